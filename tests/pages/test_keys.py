"""One limit of routing keys: what an append takes can be found, shown and erased by its text, and
what these refuse no append takes."""

from collections.abc import Iterator

import pyarrow as pa
import pytest
from fastapi.testclient import TestClient

import weir
from tests.raises import raises
from weir.errors import InvalidInput, WeirError
from weir.model.names import LONGEST_KEY
from weir.programs.store import StreamStore
from weir.settings import Settings

TAKEN = {
    "empty": "", "a blank": " ", "blanks around": "  a\t", "a number": "007", "hexadecimal": "0x1F",
    "a day": "2024-02-30", "a number of floats": "1e5", "null by name": "null", "a list": "{a,b}",
    "lines": "a\nb\r", "composed": "\u00e9", "decomposed": "e\u0301", "control": "\x01\x1b[0m",
    "bidirectional": "\u202eabc", "quotes": "a'\"\\%_", "a path": "../a/b?c#d&e=f+g",
    "beyond the first plane": "\U0001f600", "the last character": "\U0010ffff",
    "longest": "x" * LONGEST_KEY, "longest of two bytes": "\u00e4" * (LONGEST_KEY // 2),
    "an option": "--keys",
}  # fmt: skip
REFUSED = {
    "too long": "x" * (LONGEST_KEY + 1), "too long of two bytes": "\u00e4" * (LONGEST_KEY // 2 + 1),
    "a megabyte": "x" * 1_000_000, "NUL": "\0", "NUL in it": "a\0b",
}  # fmt: skip


@pytest.fixture
def store(settings: Settings) -> Iterator[StreamStore]:
    with weir.open(settings=settings) as opened:
        opened.create_stream("s/keys", "k", segments=3)
        yield opened


def test_each_key_that_is_appended_is_found_and_erased_alone(
    store: StreamStore, client: TestClient
) -> None:
    keys = list(TAKEN.values())
    store.append("s/keys", [{"k": key, "n": n} for n, key in enumerate(keys)])
    for n, key in enumerate(keys):
        answer = client.get("/api/streams/s/keys/events", params={"key": key})
        assert answer.status_code == 200, answer.text
        names = [one["name"] for one in answer.json()["columns"]]
        found = [one["values"][names.index("n")] for one in answer.json()["events"]]
        assert found == [str(n)], key
    for n in range(0, len(keys), 5):
        wanted = keys[n : n + 5]
        done = store.erase("s/keys", "a request", keys=wanted, dry_run=False)
        assert done["events"] == len(wanted)
    assert store.read("s/keys").num_rows == 0


@pytest.mark.parametrize("key", REFUSED.values(), ids=list(REFUSED))
def test_a_key_that_nothing_could_name_later_is_refused_by_all(
    store: StreamStore, client: TestClient, key: str
) -> None:
    with raises("bad_rows 1"):
        store.append("s/keys", [{"k": "a"}, {"k": key}])
    with raises("bad_rows"):
        store.append("s/keys", pa.table({"k": pa.array([key], pa.large_string())}))
    assert store.read("s/keys").num_rows == 0
    with pytest.raises(InvalidInput):
        store.erase("s/keys", "a request", keys=[key], dry_run=False)
    if len(key) < 50_000:  # no address is longer
        answer = client.get("/api/streams/s/keys/events", params={"key": key})
        assert answer.json()["error"]["code"] == "argument_invalid"


def test_half_a_character_is_no_key_anywhere(store: StreamStore) -> None:
    with pytest.raises(WeirError):
        store.append("s/keys", [{"k": "a\ud800"}])
    with pytest.raises(InvalidInput):
        store.erase("s/keys", "a request", keys=["a\ud800"])
