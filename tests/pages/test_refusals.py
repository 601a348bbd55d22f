"""What is not there, and what makes no sense, is refused with a code at every address."""

from urllib.parse import urlencode

import pytest
from fastapi.testclient import TestClient

LINEAGE = "/api/lineage?"
FILES, EVENTS = "/api/streams/shop/orders/files", "/api/streams/shop/orders/events"


@pytest.mark.parametrize(
    ("path", "code"),
    [
        *((f"/api/streams/no/such{what}", "stream_not_found")
          for what in ("", "/files", "/why", "/compaction", "/map", "/events", "/keys")),
        ("/api/nowhere", "address_not_found"),
        ("/api/streams/orders", "address_not_found"),
        *((f"/api/groups/nobody{what}", "group_not_found")
          for what in ("", "/work", "/cost", "/outputs")),
        ("/api/stores/no/such", "adjunct_store_not_found"),
        ("/api/actions/launch", "action_not_found"),
        ("/api/runs/dag?run_id=r", "run_not_found"),
        ("/api/runs/dag?run_id=r&task_id=<b>", "run_not_found"),
        *((f"{LINEAGE}{what}", "lineage_not_found")
          for what in ("stream=no/such", "group=nobody", "store=no/such", "run=a/b/c")),
        (f"{LINEAGE}run=<b>", "stream_not_found"),
        (f"{LINEAGE}stream=no/such&segment=0.0&offset=1", "stream_not_found"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_not_found(client: TestClient, path: str, code: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, code)


@pytest.mark.parametrize(
    ("path", "code"),
    [
        *((f"/api/streams?{urlencode({'sort': 'changed', 'after': after})}", "argument_invalid")
          for after in ("x", "2026-01-01", "never test/x", " ")),
        *((f"/api/runs?{urlencode({'after': after})}", "argument_invalid")
          for after in ("x", "[]", "1", '["x", "d", "r", "t", "1", "1"]',
                        '["2026-01-01", "", "", "", "x", 1]',
                        '["2026-01-01", "\\u0000", "", "", 1, 1]')),
        *((f"/api/retention?{urlencode({'after': after})}", "argument_invalid")
          for after in ("x", "2 a/s", "-1 a/s", "bench/s1")),
        *((f"{FILES}?{urlencode({'after': after})}", "argument_invalid")
          for after in ("x", "0.0@", "0.0@-1", "0.0@9999999999999999999999", "\0@1")),
        *((f"{EVENTS}?before={before}", "argument_invalid")
          for before in ("x", "1", "1.x", "1.99999999", "-1.0")),
        *((f"{LINEAGE}{given}", "arguments_conflict")
          for given in ("", "stream=a/b&group=c", "stream=a/b&offset=1", "stream=a/b&segment=0.0",
                        "group=g&segment=0.0&offset=1")),
        (f"{LINEAGE}stream=a/b&depth=99", "argument_invalid"),
        ("/api/streams/shop/orders/map?until=2001-01-01T00:00:00", "argument_invalid"),
        ("/api/stores/shop/newest/look-up", "argument_invalid"),
        ("/api/stores/shop/newest/look-up?key=k&version=0", "argument_invalid"),
        ("/api/runs/dag", "argument_invalid"),
        ("/api/groups/a%00b", "argument_invalid"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(client: TestClient, path: str, code: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)
    assert answer.json()["error"]["sentence"]


def test_what_a_page_says_to_do_is_in_the_words_of_a_page(client: TestClient) -> None:
    for what in ("events", "keys"):
        said = client.get(f"/api/streams/no/such/{what}").json()["error"]["sentence"]
        assert "weir.open" not in said
        assert "weir_create_stream" in said
