"""The outputs of two runs over the same events, row by row: by event, by key or by content; or why
they can't be compared."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import Page, expect

import weir
from tests.pages.conftest import Served, Shown, look, told
from tests.pages.serving import anybody
from tests.world.streams import run
from weir.arrow.read import read_rows
from weir.controller.read_plan import FileSlice
from weir.database.connection import Database
from weir.errors import InvalidInput
from weir.pages import kept_outputs, outputs
from weir.pages.app import Access, create_app
from weir.pages.kept_outputs import Pair, Wanted, find_pair, widened
from weir.settings import Settings
from weir.terminal.__main__ import parser
from weir.terminal.look import Terminal

GROUP = "groups/totals/outputs"
Function = Callable[[pa.Table], pa.Table]


@pytest.fixture
def store(settings: Settings) -> Iterator[weir.StreamStore]:
    """An installation with thirty orders, and a group that reads them."""
    with weir.open(settings=settings) as opened:
        opened.create_stream("shop/orders", "customer", segments=2)
        for first in (0, 10, 20):
            opened.append("shop/orders", [
                {"customer": f"c{i % 4}", "n": i, "amount": i / 2} for i in range(first, first + 10)
            ])  # fmt: skip
        opened.create_reader_group("totals", ["shop/orders"])
        yield opened


def plain(events: pa.Table) -> pa.Table:
    return events.select(["n", "amount"])


def changed(events: pa.Table) -> pa.Table:
    """The same, but for three orders, without one, and with one that there is not."""
    rows = [one for one in plain(events).to_pylist() if one["n"] != 7]
    for row in rows:
        row["amount"] += row["n"] in (3, 12, 25)
    return pa.Table.from_pylist([*rows, {"n": 100 + len(rows), "amount": None}])


def placed(function: Function) -> Function:
    """A function whose rows keep the places of their events."""

    def of(events: pa.Table) -> pa.Table:
        rows = {row["n"]: row for row in events.to_pylist()}
        kept = [row for row in function(events).to_pylist() if row["n"] in rows]
        places = ("_segment", "_offset", "_clock")
        return pa.Table.from_pylist(
            [row | {name: rows[row["n"]][name] for name in places} for row in kept]
        )

    return of


def process(
    store: weir.StreamStore, function: Function, output: str = "parquet:totals",
    group: str = "totals", batches: int = 99, events: int = 1_000_000,
) -> None:  # fmt: skip
    with store.reader(group, engine="pyarrow", batch_events=events) as reader:
        for _, batch in zip(range(batches), reader, strict=False):
            batch.write(output, function(batch.events_of("shop/orders")))
            batch.commit()


def again(store: weir.StreamStore, function: Function, **how: Any) -> None:
    store.reset_reader_group("totals", to="start", allow_repeat=True)
    process(store, function, **how)


def counts(body: dict[str, Any]) -> tuple[int, int, int, int]:
    assert body["lacks"] is None, body["lacks"]
    return body["same"], body["changed"], body["only_old"], body["only_new"]


def test_rows_are_compared_by_their_events_where_outputs_have_them(
    client: TestClient, store: weir.StreamStore
) -> None:
    kept = "parquet:totals places=yes"
    process(store, placed(plain), kept, events=10)
    again(store, placed(changed), output=kept)
    body = told(client, GROUP)
    assert counts(body) == (26, 3, 1, 0)
    assert (body["old"]["first_batch"], body["new"]["first_batch"]) == (1, 4)
    assert body["said"] == [outputs._way([], by_event=True)]
    names = [one["name"] for one in body["columns"]]
    [first] = {tuple(names[i] for i in row["changed"]) for row in body["rows"] if row["changed"]}
    assert first == ("amount",)
    n, amount = names.index("n"), names.index("amount")
    assert sorted(
        (int(row["old"][n]), row["old"][amount], row["new"][amount])
        for row in body["rows"] if row["changed"]
    ) == [(3, "1.5", "2.5"), (12, "6.0", "7.0"), (25, "12.5", "13.5")]  # fmt: skip


def test_only_the_events_of_the_batch_count_where_outputs_have_them(
    client: TestClient, store: weir.StreamStore
) -> None:
    kept = "parquet:totals places=yes"
    process(store, placed(plain), kept)
    again(store, placed(changed), output=kept, events=10)
    body = told(client, GROUP, batch=2)
    assert sum(counts(body)) == body["new"]["events"] == 10
    assert body["new"]["last_batch"] == 2


def test_without_places_all_batches_that_hang_together_are_compared_by_content(
    client: TestClient, store: weir.StreamStore
) -> None:
    process(store, plain, events=10)
    again(store, changed)
    body = told(client, GROUP)
    assert counts(body) == (26, 0, 4, 4)
    assert body["said"] == [outputs._way([], by_event=False)]
    assert (body["old"]["first_batch"], body["old"]["last_batch"]) == (1, 3)
    assert counts(told(client, GROUP, batch=1)) == (26, 0, 4, 4)


def test_columns_of_a_key_say_which_row_became_which(
    client: TestClient, store: weir.StreamStore
) -> None:
    process(store, plain)
    again(store, changed)
    body = told(client, GROUP, key="n")
    assert counts(body) == (26, 3, 1, 1)
    assert body["columns"][0]["name"] == "n"
    refused = client.get(f"/api/{GROUP}", params={"key": "no"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "column_unknown")


def test_columns_that_were_added_dropped_or_changed_their_type_are_told(
    client: TestClient, store: weir.StreamStore
) -> None:
    process(store, plain)
    again(store, lambda events: pa.table({
        "more": events["customer"], "amount": events["amount"].cast(pa.decimal128(10, 2)),
    }))  # fmt: skip
    body = told(client, GROUP)
    assert counts(body) == (30, 0, 0, 0)
    assert body["said"][1:] == [
        "Only the old output has: n; no row differs for that.",
        "Only the new output has: more; no row differs for that.",
        "amount was double and is decimal(10,2).",
    ]


def test_outputs_in_folders_of_values_are_compared_with_a_fork(
    client: TestClient, store: weir.StreamStore, tmp_path: Path
) -> None:
    store.fork_reader_group("totals", "newer")
    process(store, plain)

    def by_size(events: pa.Table) -> pa.Table:
        size = pa.array([n > 9 for n in events["n"].to_pylist()])
        return plain(events).append_column("large", size)

    process(store, by_size, "parquet:fresh partition_by=large", group="newer")
    body = told(client, "groups/newer/outputs")
    assert counts(body) == (30, 0, 0, 0)
    assert (body["old"]["output"], body["new"]["output"]) == ("parquet:totals", "parquet:fresh")
    assert [(one["name"], one["new"]) for one in body["columns"]][-1] == ("large", "boolean")
    [folder] = (tmp_path / "output/fresh").glob("*/*/*")
    pq.write_table(pa.table({"n": [1], "amount": [0.5]}), folder / "beside.parquet")
    assert counts(told(client, "groups/newer/outputs")) == (30, 0, 0, 1)


def test_what_was_appended_to_a_stream_is_compared_and_what_was_truncated_is_not(
    client: TestClient, store: weir.StreamStore, database: Database
) -> None:
    store.create_stream("shop/out", "n", segments=3)
    process(store, plain, "stream:shop/out", events=10)
    again(store, changed, output="stream:shop/out")
    store.append("shop/out", [{"n": 5, "amount": 99.0}])
    body = told(client, GROUP, key="n")
    assert counts(body) == (26, 3, 1, 1)
    assert body["new"]["output"] == "stream:shop/out"
    assert {"n", "amount"} == {one["name"] for one in body["columns"]}
    run(database, "UPDATE stream SET owner = 'weir_jobs' WHERE stream_name = 'shop/out'")
    hidden = told(client, GROUP)
    assert "wrote no row that you may see" in hidden["lacks"]
    assert "shop/out" not in str(hidden)
    run(database, "UPDATE stream SET owner = NULL WHERE stream_name = 'shop/out'")
    store.truncate_stream("shop/out", "tail", dry_run=False)
    gone = client.get(f"/api/{GROUP}")
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, "output_not_found")


def test_appended_events_are_read_a_row_group_at_a_time(
    client: TestClient, store: weir.StreamStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create_stream("shop/out", "n")
    process(store, plain, "stream:shop/out")
    again(store, changed, output="stream:shop/out")
    sizes = list[int]()

    def counting(settings: Settings, part: FileSlice, *how: Any) -> pa.Table:
        sizes.append(part.end_row - part.first_row)
        return read_rows(settings, part, *how)

    monkeypatch.setattr(kept_outputs, "read_rows", counting)
    monkeypatch.setattr(kept_outputs, "GROUP_ROWS", 8)
    assert counts(told(client, GROUP, key="n")) == (26, 3, 1, 1)
    assert max(sizes) == 8


def test_events_that_only_one_run_has_read_are_counted(
    client: TestClient, store: weir.StreamStore
) -> None:
    process(store, plain)
    again(store, plain, events=10, batches=1)
    body = told(client, GROUP)
    only = 30 - body["same"]
    assert counts(body) == (30 - only, 0, only, 0)
    assert f"The old batches have read {only} events that the others have not" in body["said"][1]


def test_it_says_in_a_sentence_why_outputs_can_not_be_compared(
    client: TestClient, store: weir.StreamStore, database: Database, tmp_path: Path
) -> None:
    def lacks(**given: Any) -> str:
        return str(told(client, GROUP, **given)["lacks"])

    assert (
        "no other run that is still recorded has made something of the events of the newest"
        in lacks()
    )
    process(store, plain)
    assert "the events of batch 1" in lacks(batch=1)
    store.create_reader_group("audit", ["shop/orders"])
    for batch in store.reader("audit"):
        batch.commit({})
    assert "weir_reset_reader_group" in lacks(batch=1), "nobody asked for group audit"
    assert "of reader group audit wrote no row" in lacks(batch=1, other="audit")
    again(store, lambda events: pa.table({}))
    assert "batch 2 of reader group totals wrote no row" in lacks()
    again(store, plain)
    assert counts(told(client, GROUP)) == (30, 0, 0, 0), "with the run that kept some"
    [*files] = (tmp_path / "output").rglob("*.parquet")
    files[0].write_bytes(b"PAR1 no more")
    torn = client.get(f"/api/{GROUP}")
    assert (torn.status_code, torn.json()["error"]["code"]) == (503, "output_not_readable")
    for file in files:
        file.unlink()
    gone = client.get(f"/api/{GROUP}")
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, "output_not_found")
    run(database, "DELETE FROM reader_batch WHERE batch_id = 1")
    assert client.get(f"/api/{GROUP}", params={"batch": 1}).status_code == 400


def test_what_was_made_of_events_that_one_does_not_see_is_not_shown(
    client: TestClient, store: weir.StreamStore, database: Database
) -> None:
    store.create_stream("shop/others", "k")
    store.append("shop/others", [{"k": "a"}])
    store.create_reader_group("both", ["shop/orders", "shop/others"])
    for _ in range(2):
        store.reset_reader_group("both", to="start", allow_repeat=True)
        process(store, plain, group="both")
    address = "groups/both/outputs"
    assert counts(told(client, address)) == (30, 0, 0, 0)
    for made in (
        "UPDATE stream SET owner = {} WHERE stream_name = 'shop/others'",
        "UPDATE reader_group SET owner = {} WHERE name = 'both'",
    ):
        run(database, made.format("'weir_jobs'"))
        refused = client.get(f"/api/{address}")
        assert refused.status_code == 400, refused.text
        assert "that you don't see" in refused.json()["error"]["sentence"]
        run(database, made.format("NULL"))
    assert counts(told(client, address)) == (30, 0, 0, 0)
    process(store, plain)
    run(database, "UPDATE reader_group SET owner = 'weir_jobs' WHERE name = 'both'")
    body = told(client, GROUP, batch=1)
    assert (body["others"], body["lacks"] is None) == ([], False)


def test_only_what_the_group_itself_wrote_is_read(
    client: TestClient, store: weir.StreamStore, database: Database
) -> None:
    store.fork_reader_group("totals", "theirs")
    process(store, plain, group="theirs")
    process(store, plain)
    again(store, plain)
    theirs = "(SELECT path FROM parquet_output WHERE group_name = 'theirs')"
    for path in (theirs, f"'totals/group=totals/../../' || {theirs}"):
        run(database, f"UPDATE parquet_output SET path = {path} WHERE group_name = 'totals'")
        refused = client.get(f"/api/{GROUP}", params={"other": "totals"})
        assert refused.status_code == 404, refused.text


def test_a_copy_of_an_installation_reads_no_output_of_the_original(
    shown: Shown, client: TestClient, store: weir.StreamStore, tmp_path: Path
) -> None:
    process(store, plain)
    again(store, plain)
    shown.settings = replace(shown.settings, output_roots=(str(tmp_path / "copy"),))
    refused = client.get(f"/api/{GROUP}")
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "output_not_found")
    assert "is not below output_roots, as in a copy" in refused.json()["error"]["sentence"]


def test_whoever_may_not_see_events_sees_no_output(
    viewing: Settings, store: weir.StreamStore
) -> None:
    app = create_app(Access(lambda conn_id: viewing, anybody, anybody, anybody))
    with TestClient(app) as client:
        assert client.get("/api/groups/totals").status_code == 200
        assert client.get(f"/api/{GROUP}").status_code == 403


def test_a_table_keeps_only_the_newest_rows_and_it_is_said(
    client: TestClient, store: weir.StreamStore, database: Database
) -> None:
    process(store, plain)
    again(store, plain)
    run(database, """UPDATE reader_batch SET outputs = '[{"kind": "table", "output": "r.late"}]'""")
    assert "wrote to table:r.late, where only the newest rows are" in told(client, GROUP)["lacks"]


def test_what_was_erased_is_in_neither_output(client: TestClient, store: weir.StreamStore) -> None:
    process(store, lambda events: events.select(["customer", "n"]))
    again(store, lambda events: events.select(["customer", "n"]).slice(2))
    assert counts(told(client, GROUP)) == (28, 0, 2, 0)
    store.erase("shop/orders", "asked", keys=["c1", "c2", "c3"], dry_run=False)
    body = told(client, GROUP, limit=100)
    assert 8 - 2 <= body["same"] <= 8
    assert all(row["old"][0] == "c0" for row in body["rows"])


@pytest.mark.server
def test_one_sees_which_rows_a_changed_function_has_changed(
    page: Page, served: Served, store: weir.StreamStore
) -> None:
    process(store, plain)
    again(store, changed)
    store.reset_reader_group("totals", to="start", allow_repeat=True)
    page.goto(f"{served.address}/group?name=totals")
    page.get_by_role("link", name="Old and new output").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Old and new output of totals")
    expect(page.get_by_role("heading", name="Only in the old output")).to_be_visible()
    expect(page.locator("del")).to_have_count(0)
    page.get_by_label("Columns of a key").fill("n")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("del")).to_have_text(["1.5", "6.0", "12.5"])
    expect(page.locator("ins")).to_have_text(["2.5", "7.0", "13.5"])
    expect(page.locator(".facts")).to_contain_text("batch 2")
    look(page, "outputs")
    page.goto(f"{served.address}/group?name=totals")
    page.get_by_role("row").filter(has_text="totals").get_by_role(
        "link", name="Compare"
    ).last.click()
    expect(page.locator(".facts")).to_contain_text("batch 1")
    page.goto(f"{served.address}/outputs?group=totals&batch=7")
    expect(page.get_by_role("alert")).to_contain_text("Batch 7 of reader group totals is not")
    served.said[:] = [one for one in served.said if "400" not in one]
    store.create_reader_group("unread", ["shop/orders"])
    page.goto(f"{served.address}/outputs?group=unread")
    expect(page.locator(".empty")).to_contain_text("so there is nothing to compare")
    expect(page.get_by_role("link", name="Fork or replay")).to_be_visible()


@pytest.mark.parametrize(
    "given",
    [{"batch": "x"}, {"batch": 0}, {"batch": 9}, {"output": "no"}, {"other": "no"},
     {"other_batch": 2}, {"limit": 101}, {"key": "a\0"}],
)  # fmt: skip
def test_a_wrong_address_is_refused_in_a_sentence(
    client: TestClient, store: weir.StreamStore, given: dict[str, Any]
) -> None:
    process(store, plain)
    again(store, plain)
    refused = client.get(f"/api/{GROUP}", params=given)
    assert refused.status_code == 400, refused.text
    assert refused.json()["error"]["sentence"]
    assert client.get("/api/groups/no/outputs").status_code == 404


def test_what_is_too_much_is_refused(
    client: TestClient, store: weir.StreamStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    process(store, plain)
    again(store, plain)
    for limits in (
        (0, 99, 1 << 20, 9.0),
        (9, 9, 1 << 20, 9.0),
        (9, 99, 9, 9.0),
        (9, 99, 1 << 20, 1e-9),
    ):
        monkeypatch.setattr(outputs, "PAGE", kept_outputs.Limits(*limits))
        refused = client.get(f"/api/{GROUP}").json()
        assert refused["error"]["code"] == "answer_too_large", limits


def test_batches_that_hang_together_are_looked_for_within_the_time(
    store: weir.StreamStore, database: Database
) -> None:
    process(store, plain, events=10)
    again(store, changed)
    pair = database.snapshot(lambda c: find_pair(c, Wanted("totals")))
    assert isinstance(pair, Pair)
    with pytest.raises(InvalidInput) as refused:
        database.snapshot(lambda c: widened(c, pair, until=0.0))
    assert refused.value.code == "answer_too_large"


def test_a_terminal_says_the_same(
    store: weir.StreamStore, viewing: Settings, capsys: pytest.CaptureFixture[str],
    database: Database,
) -> None:  # fmt: skip
    process(store, plain)
    again(store, changed)

    def typed(*words: str, as_json: bool = False) -> str:
        given = parser("outputs").parse_args(["outputs", "totals", *words])
        assert given.run(Terminal(viewing, database, as_json), given) == 0
        out, err = capsys.readouterr()
        return str(out + err)

    lines = typed("--key", "n", "--limit", "1").splitlines()
    assert [line.split() for line in lines[-5:]] == [
        ["n", "amount"], ["was", "3", "1.5"], ["is", "(amount)", "3", "2.5"],
        ["only", "old", "7", "3.5"], ["only", "new", "129", "-"],
    ]  # fmt: skip
    whole = json.loads(typed(as_json=True))
    assert (whole["same"], whole["only_old"], whole["only_new"]) == (26, 4, 4)
    again(store, changed)
    assert typed().splitlines()[-1] == "No row differs."
    run(database, "DELETE FROM reader_batch WHERE batch_id < 3")
    assert "no other run that is still recorded" in typed()
