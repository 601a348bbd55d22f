"""Many threads share one opened installation, and many processes open the same one beside them."""

import contextlib
import json
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import weir
from tests.chance import random_for
from tests.programs.test_store import store, value
from weir.errors import Conflict, Fenced

__all__ = ["store"]  # the fixture
REPOSITORY = Path(__file__).parents[2]
THREADS, APPENDS = 64, 6
_PROCESS = """
import json, sys, weir
from weir.errors import Fenced
database, warehouse, number = sys.argv[1:]
with weir.open(database, warehouse) as store:
    for one in range(6):
        # Each identity is appended by two processes: one of them appends nothing.
        writer = f"process {int(number) // 2}"
        rows = [{"customer": writer, "n": one, "row": row} for row in range(5)]
        while True:
            try:
                store.append("shop/orders", rows, writer_id=writer, batch_id=str(one))
                break
            except Fenced:
                continue
        store.tail("shop/orders", 2)
print(json.dumps(len(store.source)))
"""


def appended(store: weir.StreamStore, rows: list[dict[str, Any]], writer: str, one: int) -> bool:
    """Append until it is in. A newer attempt of the same identity fences an older one, which then
    finds its rows appended. Return whether it was this call that appended them."""
    while True:
        with contextlib.suppress(Fenced):
            done = store.append("shop/orders", rows, writer_id=writer, batch_id=str(one))
            return not done.repeated


def test_threads_mix_actions_appends_and_reads_and_each_happens_once(
    store: weir.StreamStore,
) -> None:
    store.create_stream("shop/orders", "customer", segments=4)
    works = [(n // 2, one) for n in range(THREADS) for one in range(APPENDS)]
    random_for("threads").shuffle(works)  # each identity twice, by whichever threads
    made: list[str] = []

    def work(identity: tuple[int, int]) -> int:
        number, one = identity
        rows = [{"customer": f"c{number}", "n": one, "row": row} for row in range(5)]
        mine = appended(store, rows, f"thread {number}", one)
        if one == 0:
            with contextlib.suppress(Conflict):  # the other thread has made it
                made.append(
                    store.create_reader_group(f"g{number}", ["shop/orders"])["reader_group"]
                )
        if one == 1:
            assert store.tail("shop/orders", 3).num_rows <= 3
        return mine

    with ThreadPoolExecutor(THREADS) as pool:
        assert sum(pool.map(work, works)) == THREADS // 2 * APPENDS
    assert_each_once(store, [(f"c{n}", one) for n in range(THREADS // 2) for one in range(APPENDS)])
    groups = "SELECT array_agg(reader_group) FROM reader_groups"
    assert sorted(made) == sorted(value(store, groups))
    assert len(made) == THREADS // 2


@pytest.mark.release
def test_processes_append_beside_each_other_and_each_identity_once(store: weir.StreamStore) -> None:
    store.create_stream("shop/orders", "customer", segments=4)
    settings = store.settings
    started = [
        subprocess.Popen(
            [sys.executable, "-c", _PROCESS, settings.database, settings.warehouse, str(n)],
            env={"PYTHONPATH": str(REPOSITORY / "plugins"), "PATH": "/usr/bin:/bin"},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for n in range(16)
    ]  # fmt: skip
    for one in started:
        said, complaint = one.communicate(timeout=300)
        assert one.returncode == 0, complaint
        assert json.loads(said)
    assert_each_once(store, [(f"process {n}", one) for n in range(8) for one in range(6)])


def assert_each_once(store: weir.StreamStore, identities: list[tuple[str, int]]) -> None:
    """Each identity's five rows are there once; rows of an append stay in their order."""
    table = store.read("shop/orders", columns=["customer", "n", "row"])
    counted: Counter[Any] = Counter(
        zip(*(table[name].to_pylist() for name in ("customer", "n", "row")), strict=True)
    )
    assert counted == {(who, n, row): 1 for who, n in identities for row in range(5)}
    order: dict[tuple[str, int], list[int]] = {}
    for one in sorted(
        store.read("shop/orders").to_pylist(), key=lambda e: (e["_segment"], e["_offset"])
    ):
        order.setdefault((one["customer"], one["n"]), []).append(one["row"])
    assert all(rows == list(range(5)) for rows in order.values())
