"""After a kill the next reader of the machine continues at once; none that lives is disturbed."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import weir
from tests.consumers.test_reader import append
from tests.crash.forks import Child, children
from tests.crash.jobs import wait_for
from weir.consumers.reader_names import has_ended, reader_name
from weir.operations.runner import by_hand


def test_only_a_process_of_this_machine_that_is_gone_has_ended() -> None:
    mine = reader_name()
    host, _, mark = mine.partition("/")
    pid, _, number = mark.partition("-")
    assert pid == str(os.getpid())
    child = Child(lambda: f"{reader_name()} {by_hand('process')}")
    ended, _, run = child.wait()[1].partition(" ")
    assert has_ended(ended)
    assert has_ended(run)
    assert has_ended(f"elsewhere/{ended.partition('/')[2]}"), "the start of a machine is its own"
    gone = ended.partition("/")[2].partition("-")[0]
    for lives in (
        mine, str(by_hand("process")),  # this one
        f"{host}/{gone}-000000{number[6:]}",  # before the last start, or in another container
        f"{host}/1-{number}",  # somebody else's
        f"weir_process/manual__2026-11-26T10:00:00-{gone}/process/0", "", "/", f"{host}/x-{number}",
    ):  # fmt: skip
        assert not has_ended(lives), lives


def test_the_batch_of_a_reader_that_was_killed_is_read_again_at_once(
    store: weir.StreamStore, tmp_path: Path
) -> None:
    append(store, range(5))
    # Its lease would last for longer than a test.
    settings, sign = replace(store.settings, reader_lease=86_400.0), tmp_path / "sign"

    def work() -> str:
        with weir.open(settings=settings) as mine, mine.reader("g") as reader:
            sign.write_text(str(next(reader).size))
            signal.pause()
        return ""

    with children() as started:
        started.append(Child(work))
        wait_for("its batch", sign.exists)
        started[0].signal(signal.SIGKILL)
        started[0].wait()
        with store.reader("g", reader_id="looks") as looks:
            assert looks._waits()
            assert not looks._waits(), "it has its open batch, but is no news, so there is a pause"
        sizes = []
        for batch in store.reader("g"):
            sizes.append((batch.size, batch.attempt))
            batch.commit()
        assert sizes == [(5, 2)]
