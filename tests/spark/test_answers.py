"""What tasks answer is values: nothing that they send is called."""

import os
import pickle
import subprocess
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

from weir.kernel.folder_files import FolderFile
from weir.spark.base.answers import heard, told
from weir.spark.base.in_tasks import Answer
from weir.warehouse.filesystem import make_folder


class Calls:
    """What pickles as a call of a function."""

    def __init__(self, function: Any, *given: Any) -> None:
        self.of = (function, given)

    def __reduce__(self) -> Any:
        return self.of


def test_values_come_as_they_were_sent() -> None:
    file = FolderFile("a.parquet", 1, 2)
    sent = Answer([file, {"at": datetime(2026, 1, 1, tzinfo=UTC), "n": {1}}, Decimal("1.5")], 2)
    assert heard(told(sent)) == sent


@pytest.mark.parametrize(
    "call",
    [Calls(os.system, "true"), Calls(eval, "1"), Calls(subprocess.run, ["true"]),
     Calls(make_folder, None, "x"), Calls(getattr, "a", "upper"), partial(print, 1)],
)  # fmt: skip
def test_an_answer_that_would_call_something_is_refused(call: Any) -> None:
    with pytest.raises(pickle.UnpicklingError, match="is no value"):
        heard(told(Answer(call)))
