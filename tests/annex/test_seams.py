"""What hangs on the core is asked at its place."""

import weir
from weir.settings import Settings


def test_upkeep_does_first_what_frees_files_and_compacts_last(settings: Settings) -> None:
    with weir.open(settings=settings) as store:
        done = list(store.upkeep())
    assert done.index("published") < done.index("deleted") < done.index("signed")
    assert done[-2:] == ["packed", "compacted"]


def test_cuts_are_proven_in_the_run_that_records_them(settings: Settings) -> None:
    with weir.open(settings=settings) as store:
        report = store.stream_cuts()
    assert list(report) == ["captured", "proven"]
