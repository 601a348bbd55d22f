"""The events themselves: the newest first, up to a time, of a key; every type as it is; bounded."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi import HTTPException
from fastapi.testclient import TestClient
from playwright.sync_api import Page, expect

import weir
from tests.pages.conftest import Served, look
from tests.pages.serving import anybody
from tests.world.streams import run
from weir.arrow.read import read_rows
from weir.controller.read_plan import FileSlice
from weir.controller.rejected import make_rejected_stream
from weir.database.connection import Database
from weir.model.names import stream_name
from weir.pages import browse, events
from weir.pages.app import Access, create_app
from weir.settings import Settings

EVENTS = "/api/streams/shop/orders/events"


def put(settings: Settings, *appends: Any, segments: int = 2) -> None:
    """Append to shop/orders, one commit for each table or list of rows."""
    with weir.open(settings=settings) as store:
        store.create_stream("shop/orders", "key", segments=segments)
        for rows in appends:
            store.append("shop/orders", rows)


def pages(client: TestClient, **given: Any) -> list[list[Any]]:
    """The values of column n on each page, until there is none after it."""
    found: list[list[Any]] = []
    while True:
        answer = client.get(EVENTS, params=given)
        assert answer.status_code == 200, answer.text
        body = answer.json()
        n = [one["name"] for one in body["columns"]].index("n")
        found.append([event["values"][n] for event in body["events"]])
        if body["next"] is None:
            return found
        given["before"] = body["next"]


def test_events_come_newest_first_page_by_page(client: TestClient, settings: Settings) -> None:
    appends = [[{"key": f"k{i % 5}", "n": i} for i in range(a, a + 10)] for a in (0, 10, 20)]
    put(settings, *appends)
    found = pages(client, limit=7)
    assert [len(page) for page in found] == [7, 7, 7, 7, 2]
    assert [int(n) for page in found for n in page] == list(range(29, -1, -1))


def test_a_page_that_ends_with_the_oldest_event_is_the_last(
    client: TestClient, settings: Settings
) -> None:
    put(settings, [{"key": f"k{i}", "n": i} for i in range(10)])
    assert [len(page) for page in pages(client, limit=5)] == [5, 5]


def test_events_up_to_a_time_are_those_that_were_appended_by_then(
    client: TestClient, settings: Settings
) -> None:
    put(settings, [{"key": "a", "n": 1}], [{"key": "a", "n": 2}], [{"key": "b", "n": 3}])
    all_of_them = client.get(EVENTS).json()["events"]
    at = all_of_them[1]["committed_at"]
    assert pages(client, at=at) == [["2", "1"]]
    assert pages(client, at="2001-01-01") == [[]]
    assert client.get(EVENTS, params={"at": "yesterday"}).status_code == 400


def test_events_of_a_key_are_found_wherever_they_are(
    client: TestClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"key": f"k{i % 7}", "n": i} for i in range(70)]
    put(settings, rows[:30], rows[30:], segments=3)
    of_k3 = [str(i) for i in range(66, 0, -7)]
    assert [n for page in pages(client, key="k3", limit=4) for n in page] == of_k3
    assert pages(client, key="no such") == [[]]
    monkeypatch.setattr("weir.pages.browse.LOOKED", 5)
    assert [n for page in pages(client, key="k3", limit=4) for n in page] == of_k3


def test_events_of_a_transformed_key_are_found(
    client: TestClient, settings: Settings, database: Database
) -> None:
    put(settings, [{"key": key, "n": n} for n, key in enumerate(["a", "b", "A"])], segments=1)
    run(database, "UPDATE stream SET routing_key = 'upper(key)'")
    assert pages(client, key="A") == [["2", "0"]]
    body = client.get("/api/streams/shop/orders/keys").json()
    assert body["keys"] == [{"key": "A", "events": 2}, {"key": "B", "events": 1}]


def test_every_type_is_shown_as_it_is(client: TestClient, settings: Settings) -> None:
    row = {
        "key": "a",
        "binary": b"\x00\xff",
        "decimal": Decimal("12345678901234567890.1234567890"),
        "time": datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
        "day": date(2026, 1, 2),
        "nested": {"list": [1, None], "bytes": b"x"},
        "truth": True,
        "nan": float("nan"),
        "tenth": 0.1,
        "empty": "",
        "missing": None,
        "markup": "<b>é</b>",
    }
    schema = pa.schema(
        [
            ("key", pa.string()), ("binary", pa.binary()), ("decimal", pa.decimal128(38, 10)),
            ("time", pa.timestamp("us", tz="UTC")), ("day", pa.date32()),
            ("nested", pa.struct([("list", pa.list_(pa.int64())), ("bytes", pa.binary())])),
            ("truth", pa.bool_()), ("nan", pa.float64()), ("tenth", pa.float64()),
            ("empty", pa.string()), ("missing", pa.string()), ("markup", pa.string()),
        ]
    )  # fmt: skip
    put(settings, pa.Table.from_pylist([row], schema=schema))
    body = client.get(EVENTS).json()
    [event] = body["events"]
    shown = dict(zip([one["name"] for one in body["columns"]], event["values"], strict=True))
    assert shown == {
        "key": "a", "binary": "0x00ff", "decimal": "12345678901234567890.1234567890",
        "time": "2026-01-02T03:04:05.678901+00:00", "day": "2026-01-02",
        "nested": '{"list": [1, null], "bytes": "eA=="}', "truth": "true", "nan": "nan",
        "tenth": "0.1", "empty": "", "missing": None, "markup": "<b>é</b>",
    }  # fmt: skip
    types = {one["name"]: one["type"] for one in body["columns"]}
    assert types["decimal"] == "decimal(38,10)"


def test_events_are_found_by_a_condition_on_columns(
    client: TestClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(settings, [{"key": f"k{i % 2}", "n": i, "text": None if i % 3 else "x"} for i in range(9)])

    def found(**given: str) -> list[str]:
        body = client.get(EVENTS, params=given).json()
        return [one["values"][1] for one in body["events"]]

    assert found(condition="n >= 3 and text is not null") == ["6", "3"]
    assert found(condition=" n >= 3 ", key="k1", limit="2") == ["7", "5"]
    assert found(condition="text is null", before="") == ["8", "7", "5", "4", "2", "1"]
    for wrong in ("n", "no_column = 1", "n >", "sleep(9) = 1"):
        answer = client.get(EVENTS, params={"condition": wrong})
        assert answer.status_code == 400, wrong
    monkeypatch.setattr(browse, "LOOKED", 3)
    with weir.open(settings=settings) as store:
        store.append("shop/orders", [{"key": "k", "n": i, "text": ""} for i in range(100, 104)])
    body = client.get(EVENTS, params={"condition": "n < 0"}).json()
    assert (body["events"], body["looked"]) == ([], 4)
    assert body["next"] is not None


def test_events_that_match_and_were_passed_are_not_read_again(
    client: TestClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(settings, [{"key": "k", "n": i} for i in range(300)], segments=1)
    first = client.get(EVENTS, params={"condition": "n >= 0", "limit": "5"}).json()
    clock = first["next"].partition(".")[0]
    reads: list[object] = []

    def counted(*given: Any, **more: Any) -> pa.Table:
        reads.append(given)
        return read_rows(*given, **more)

    monkeypatch.setattr(browse, "read_rows", counted)
    given = {"condition": "n >= 0", "limit": "5", "before": f"{clock}.200"}
    found = client.get(EVENTS, params=given).json()["events"]
    assert [one["values"][1] for one in found] == ["99", "98", "97", "96", "95"]
    assert len(reads) == 1 + 5


def test_a_file_is_read_from_its_end_until_so_many_match(
    client: TestClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(settings, [{"key": "k", "n": i, "m": i % 20} for i in range(300)], segments=1)
    monkeypatch.setattr(browse, "LOOKED", 10)
    reads: list[tuple[int, int]] = []

    def counted(_: Settings, part: FileSlice, *given: Any, **more: Any) -> pa.Table:
        reads.append((part.first_row, part.end_row))
        return read_rows(settings, part, *given, **more)

    monkeypatch.setattr(browse, "read_rows", counted)
    given = {"condition": "m = 5", "limit": "2"}
    found = client.get(EVENTS, params=given).json()["events"]
    assert [one["values"][1] for one in found] == ["285", "265"]
    assert reads[:3] == [(290, 300), (250, 290), (90, 250)]
    every = [n for page in pages(client, **given) for n in page]
    assert every == [str(n) for n in range(285, 0, -20)]


def test_long_values_and_many_columns_are_cut_and_said(
    client: TestClient, settings: Settings
) -> None:
    put(settings, [{"key": "a", **{f"c{i}": "x" * 5000 for i in range(60)}}])
    answer = client.get(EVENTS)
    body = answer.json()
    [event] = body["events"]
    assert len(body["columns"]) == events.MOST_COLUMNS
    assert len(body["hidden"]) == 61 - events.MOST_COLUMNS
    assert event["values"][1] == "x" * events.LONGEST
    assert event["cut"]["1"] == 5000
    assert len(answer.content) < 30_000


def test_what_was_truncated_is_said(client: TestClient, settings: Settings) -> None:
    put(settings, [{"key": "a", "n": 1}])
    with weir.open(settings=settings) as store:
        store.truncate_stream("shop/orders", "tail", dry_run=False)
    body = client.get(EVENTS).json()
    assert body["events"] == []
    assert body["missing"].startswith("1 event of stream shop/orders was truncated")


def test_a_few_rows_of_a_large_row_group_take_little_memory(
    client: TestClient, settings: Settings, tmp_path: Any
) -> None:
    many = 200_000
    columns = {"key": ["k"] * many, "n": list(range(many)), "text": ["x" * 200] * many}
    put(settings, pa.table(columns), segments=1)
    [file] = (tmp_path / "warehouse").rglob("*.parquet")
    assert max(pq.ParquetFile(file).metadata.row_group(0).num_rows, 0) > 50_000
    before = pa.total_allocated_bytes()
    found = client.get(EVENTS, params={"limit": 3}).json()
    assert [event["values"][1] for event in found["events"]] == ["199999", "199998", "199997"]
    assert pa.total_allocated_bytes() - before < 4_000_000


def test_hot_keys_are_counted_among_the_newest_events(
    client: TestClient, settings: Settings
) -> None:
    put(settings, [{"key": "hot", "n": 1}] * 30 + [{"key": f"k{i}", "n": 1} for i in range(10)])
    body = client.get("/api/streams/shop/orders/keys").json()
    assert body["keys"][0] == {"key": "hot", "events": 30}
    assert (body["sampled"], body["distinct"]) == (40, 11)


def test_hot_keys_are_counted_among_fewer_events_if_they_are_in_many_files(
    client: TestClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(settings, *([{"key": "a", "n": n}] for n in range(5)), segments=1)
    monkeypatch.setattr("weir.pages.browse.MOST_FILES", 3)
    assert client.get("/api/streams/shop/orders/keys").json()["sampled"] == 3


def test_what_takes_too_many_files_is_refused_in_a_sentence(
    client: TestClient, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(settings, *([{"key": "a", "n": n}] for n in range(5)))
    monkeypatch.setattr("weir.pages.browse.MOST_FILES", 3)
    answer = client.get(EVENTS)
    assert answer.status_code == 409
    assert answer.json()["error"]["code"] == "events_too_large"
    assert pages(client, key="a", limit=9) == [["4", "3", "2"], ["1", "0"]]


def test_few_look_at_once(client: TestClient, settings: Settings) -> None:
    put(settings, [{"key": "a", "n": 1}])
    for _ in range(events.AT_ONCE):
        assert events._looking.acquire(blocking=False)
    try:
        answer = client.get(EVENTS)
    finally:
        for _ in range(events.AT_ONCE):
            events._looking.release()
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "lock_held"
    assert client.get(EVENTS).status_code == 200


def test_who_may_see_streams_may_not_yet_see_events(settings: Settings) -> None:
    def nobody() -> None:
        raise HTTPException(403, "Forbidden")

    for access in (
        Access(lambda _: settings, anybody, anybody, anybody),
        Access(lambda _: settings, anybody, anybody, anybody, nobody),
    ):
        client = TestClient(create_app(access))
        assert client.get("/api/streams").status_code == 200
        for what in ("events", "keys"):
            assert client.get(f"/api/streams/shop/orders/{what}").status_code == 403


@pytest.mark.server
def test_one_looks_through_events_and_finds_those_of_a_key(
    page: Page, served: Served, settings: Settings
) -> None:
    rows = [{"key": f"k{i % 9}", "n": i, "text": None if i % 4 else "<i>long</i> " * 60}
            for i in range(60)]  # fmt: skip
    put(settings, rows)
    page.goto(f"{served.address}/stream?name=shop/orders")
    page.get_by_role("link", name="Events", exact=True).click()
    expect(page.locator("tbody tr")).to_have_count(25)
    expect(page.locator("tbody tr").first).to_contain_text("59")
    look(page, "events")
    page.get_by_role("button", name="Older").click()
    expect(page.locator("tbody tr").first).to_contain_text("34")
    page.get_by_role("button", name="Newer").click()
    expect(page.locator("tbody tr").first).to_contain_text("59")
    page.get_by_role("button", name="Hot keys").click()
    page.get_by_role("table", name="Hot keys").get_by_role("button", name="k3").click()
    expect(page.locator("main")).to_contain_text("looked through, back to")
    expect(page.get_by_role("table", name="Events").locator("tbody tr")).to_have_count(7)
    look(page, "events-of-a-key")
    page.get_by_label("Condition on columns").fill("n > 30 and text is null")
    page.get_by_role("button", name="Look", exact=True).click()
    expect(page.get_by_role("table", name="Events").locator("tbody tr")).to_have_count(2)
    page.get_by_label("Condition on columns").fill("amount > 30")
    page.get_by_role("button", name="Look", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("amount")
    served.said[:] = [one for one in served.said if "400" not in one]
    page.get_by_role("button", name="Newest").click()
    expect(page.get_by_role("table", name="Events").locator("tbody tr")).to_have_count(25)
    assert page.locator("main i").count() == 0
    page.get_by_role("link", name="@").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Lineage of shop/orders, row")
    expect(page.locator(".graph .node").first).to_be_visible()


@pytest.mark.server
def test_rejected_rows_are_read_with_their_reasons_and_put_back(
    page: Page, served: Served, settings: Settings, database: Database
) -> None:
    put(settings, [{"key": "a", "n": 1}])
    make_rejected_stream(database, stream_name("shop/orders"))
    with weir.open(settings=settings) as store:
        row = {"row": '{"n": "x<b>"}', "place": 7, "reason": "n is no number", "column": "n",
               "text": "x<b>", "type": "long"}  # fmt: skip
        store.append(
            "shop/orders.rejected",
            [row | {"source": "totals.csv"}, row | {"source": "group totals, segment 0.0"}],
        )
    page.goto(f"{served.address}/stream?name=shop/orders")
    page.get_by_role("link", name="Rejected rows").click()
    expect(page.locator("tbody tr")).to_have_count(2)
    expect(page.locator("tbody")).to_contain_text("n is no number")
    expect(page.get_by_role("link", name="Put back")).to_have_count(1)
    look(page, "rejected")
    page.get_by_role("link", name="Put back").click()
    expect(page.get_by_label("Reader group")).to_have_value("totals")
    expect(page.locator(".command code")).to_have_text("weir put-back totals")
