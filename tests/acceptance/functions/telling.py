"""What Airflow's triggerer calls when a deadline is missed."""

import os
from pathlib import Path
from typing import Any


async def late(**told: Any) -> None:
    """Write down that it was called."""
    Path(os.environ["WEIR_STATE"], "late").write_text(", ".join(sorted(told)))
