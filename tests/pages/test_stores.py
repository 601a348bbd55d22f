"""The adjunct stores, as JSON and in a browser."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import Page, expect

from tests.pages.conftest import EVIL, Served, look, pages, told
from tests.pages.serving import anybody
from tests.world.adjunct import FIELDS, Store
from tests.world.groups import Group
from tests.world.streams import Lane, run
from weir.adjunct.publication import publish_build
from weir.database.connection import Database
from weir.model.key_space import routing_steps
from weir.model.schema import new_field
from weir.pages.app import Access, create_app
from weir.queries.adjunct.versions import AdjunctFile
from weir.settings import Settings
from weir.warehouse.filesystem import filesystem

COLUMNS = [*FIELDS, new_field("city", "string")]


def written(settings: Settings, store: Store, cities: dict[str, str | None]) -> None:
    """Build a version of a store that has these keys, with a real file."""
    build = store.begun("dag/run/build")
    keys = sorted(cities, key=lambda key: routing_steps(key.encode()))
    steps = [routing_steps(key.encode()) for key in keys]
    path = f"{build.folder}table/part.parquet"
    system, base = filesystem(settings.warehouse)
    system.create_dir(f"{base}/{build.folder}table", recursive=True)
    table = pa.table({
        "_weir_hash": pa.array(steps, pa.int64()), "_weir_key": keys,
        "city": pa.array([cities[key] for key in keys], pa.string()),
        "_weir_clock": pa.array([7] * len(keys), pa.int64()),
    })  # fmt: skip
    with system.open_output_stream(f"{base}/{path}") as target:
        pq.write_table(table, target)
    file = AdjunctFile(path, len(keys), 100, steps[0], steps[-1])
    made = replace(store.built(build, files=[file]), fields=COLUMNS)
    publish_build(store.database, build, made)


def test_stores_come_in_pages_and_say_how_far_they_are(
    client: TestClient, database: Database
) -> None:
    lane = Lane.made(database, 1)
    lane.append({"0.0": 5})
    stores = [Store.made(lane) for _ in range(3)]
    stores[0].build()
    lane.append({"0.0": 2})
    answers = list(pages(client, "stores", limit=2))
    assert [one["total"] for one in answers] == [3, 3]
    found = [row for one in answers for row in one["stores"]]
    assert [one["store"] for one in found] == sorted(one.name for one in stores)
    [built] = [one for one in found if one["store"] == stores[0].name]
    assert (built["version"], built["row_count"], built["events_behind"]) == (1, 10, 2)
    assert built["stream"] == str(lane.name)
    [only] = told(client, "stores", search=stores[1].name.upper())["stores"]
    assert (only["store"], only["version"]) == (stores[1].name, None)


def test_a_store_shows_its_versions_and_who_reads_with_them(
    client: TestClient, database: Database
) -> None:
    lane = Lane.made(database, 1)
    lane.append({"0.0": 5})
    store = Store.made(lane, value="city")
    store.build("dag/run/build")
    lane.append({"0.0": 5})
    store.begun("other")
    group = Group.made(lane)
    batch = group.reader().must_open()
    run(
        database,
        """INSERT INTO adjunct_pin (group_id, batch_id, store_id, cut, clock, version, pinned_at)
        SELECT :g, :b, store_id, cut, clock, version, now() FROM adjunct_version
        WHERE version = 1""",
        g=group.group_id, b=batch.batch_id,
    )  # fmt: skip
    shown = told(client, f"stores/{store.name}")
    assert [(one["version"], one["state"]) for one in shown["versions"]] == [
        (2, "building"), (1, "published"),
    ]  # fmt: skip
    assert (shown["store"]["building"], shown["store"]["value"]) == ("other", "city")
    assert shown["versions"][1]["builder"] == "dag/run/build"
    [pin] = shown["pins"]
    assert (pin["reader_group"], pin["version"], pin["state"]) == (group.name, 1, "pinned")


def test_a_key_is_looked_up_in_any_version(
    client: TestClient, database: Database, settings: Settings
) -> None:
    lane = Lane.made(database, 1)
    lane.append({"0.0": 5})
    store = Store.made(lane)
    path = f"stores/{store.name}/look-up"
    answer = client.get(f"/api/{path}", params={"key": "ann"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (
        404,
        "adjunct_version_not_found",
    )
    written(settings, store, {"ann": "Bonn", "bob": None, EVIL: "x" * 5000})
    lane.append({"0.0": 5})
    written(settings, store, {"ann": "Köln"})

    def looked(**given: Any) -> Any:
        values = told(client, path, **given)["values"]
        return values and {one["name"]: one["value"] for one in values}

    assert looked(key="ann") == {"city": "Köln", "_clock": "7"}
    assert looked(key="ann", version=1) == {"city": "Bonn", "_clock": "7"}
    assert looked(key="bob", version=1) == {"city": None, "_clock": "7"}
    assert looked(key="bob") is None
    long = told(client, path, key=EVIL, version=1)["values"][0]
    assert (len(long["value"]), long["cut"]) == (4000, True)
    assert client.get(f"/api/{path}", params={"key": "ann", "version": 9}).status_code == 404


def test_whoever_may_not_see_events_looks_nothing_up(
    database: Database, settings: Settings
) -> None:
    store = Store.made(Lane.made(database, 1))
    client = TestClient(create_app(Access(lambda _: settings, anybody, anybody, anybody)))
    assert client.get(f"/api/stores/{store.name}").status_code == 200
    answer = client.get(f"/api/stores/{store.name}/look-up", params={"key": "ann"})
    assert answer.status_code == 403


@pytest.mark.server
def test_a_store_is_found_and_a_key_is_looked_up_in_its_versions(
    page: Page, served: Served, database: Database, settings: Settings
) -> None:
    page.goto(f"{served.address}/streams")
    page.get_by_role("link", name="Adjunct stores").click()
    expect(page.locator("main")).to_contain_text("There is no adjunct store yet")
    lane = Lane.made(database, 1, name="shop/customers")
    lane.append({"0.0": 5})
    store = Store.made(lane)
    written(settings, store, {"ann": EVIL, "bob": None})
    lane.append({"0.0": 2})
    page.keyboard.press("r")
    expect(page.locator("tbody tr")).to_contain_text("2 events behind")
    look(page, "stores")
    page.get_by_role("link", name=store.name).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(store.name)
    expect(page.locator("main")).to_contain_text("published")
    page.get_by_label("Key").fill("ann")
    page.keyboard.press("Enter")
    expect(page.locator("main [role=status]")).to_contain_text(EVIL)
    assert page.locator("main img").count() == 0
    look(page, "store")
    page.get_by_label("Key").fill("carl")
    page.get_by_role("button", name="Look up").click()
    expect(page.locator("main [role=status]")).to_contain_text("the newest version has no key carl")
    page.get_by_role("spinbutton", name="Version").fill("7")
    page.get_by_role("button", name="Look up").click()
    expect(page.get_by_role("alert")).to_contain_text("7")
    served.said[:] = [one for one in served.said if "404" not in one]
