"""What an annex hangs on Airflow, in its module `in_airflow`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Offered:
    """What DAG files import from `weir.airflow`: the module of each name; what templates call as
    `macros.weir.NAME`; and references of deadlines."""

    names: Mapping[str, str] = field(default_factory=dict)
    macros: Sequence[Callable[[str], object]] = ()
    deadlines: Sequence[type] = ()
