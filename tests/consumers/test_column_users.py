"""Who names a column is listed before it changes, and the change is refused without a flag
(semantics 5.5)."""

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import weir
from tests.raises import raises
from tests.world.columns import column
from tests.world.streams import rows, unique
from weir.adjunct.builds import Build, begin_build
from weir.adjunct.stores import define_store, update_store
from weir.consumers.column_users import allowing
from weir.consumers.function_source import source_of
from weir.controller.ownership import read_installation
from weir.controller.streams import create_stream
from weir.controller.update import update_stream
from weir.database.connection import Database
from weir.errors import Conflict
from weir.installation.opened import close_shared
from weir.model.adjunct_configuration import AdjunctConfiguration, AdjunctDefinition
from weir.model.column_changes import ColumnChanges
from weir.model.names import stream_name
from weir.reader_groups.batches.lifecycle import Function
from weir.reader_groups.groups.consumers import declare_consumer
from weir.settings import Settings
from weir.warehouse.marker import Marker, write_marker

ORDERS = "shop/orders"
FIELDS = [column("customer", "string"), column("n", "long"), column("city", "string")]


def totals(events: Any) -> Any:
    """A function whose text names city, and whose module is in this folder."""
    return events


@pytest.fixture
def store(database: Database, settings: Settings) -> Iterator[weir.StreamStore]:
    write_marker(settings.warehouse, Marker(read_installation(database).installation_id))
    folder = str(Path(inspect.getfile(totals)).parent)
    settings = settings.__class__(**{**settings.__dict__, "function_path": (folder,)})
    create_stream(
        database, stream_name(ORDERS), routing_key="customer", segments=2, fields=FIELDS,
        request_id=unique("create"),
    )  # fmt: skip
    with weir.open(settings=settings, source="shop") as opened:
        yield opened
    close_shared()


def consumer(store: weir.StreamStore, group: str, **settings: Any) -> None:
    store.create_reader_group(group, [ORDERS])
    declare_consumer(store.database, group, settings, request_id=unique("declare"))


def refused(store: weir.StreamStore, **changes: list[str]) -> str:
    with pytest.raises(Conflict) as error:
        store.update_stream(ORDERS, **changes)  # type: ignore[arg-type]
    assert error.value.code == "columns_in_use"
    return error.value.sentence


def test_consumers_functions_and_outputs_that_name_a_column_are_listed_first(
    store: weir.StreamStore,
) -> None:
    consumer(
        store, "totals", function="test_column_users:totals",
        outputs=["table:shop.totals mode=upsert key=n,customer"], parameters={"by": "city"},
    )  # fmt: skip
    said = refused(store, drop_columns=["city"])
    assert "function test_column_users:totals of consumer totals has 'city' in line" in said
    assert "the parameters of consumer totals name 'city'" in said
    assert "output 'table:shop.totals mode=upsert key=n,customer' of consumer totals names 'n'" in (
        refused(store, rename_columns=["n -> number"])
    )
    plan = store.update_stream(ORDERS, drop_columns=["city"], dry_run=True)
    assert len(plan["named_by"]) == 2
    assert plan["changed"] == {"city": "dropped"}
    assert plan["columns"] == ["customer string", "n long"]
    store.append(ORDERS, [{"customer": "a", "n": 1, "city": "x"}])  # nothing has changed
    done = store.update_stream(ORDERS, drop_columns=["city"], allow_named=True)
    assert done["named_by"] == plan["named_by"]
    assert store.read(ORDERS).column_names[:2] == ["customer", "n"]


def test_a_group_of_which_nobody_knows_what_it_uses_must_be_asked(
    store: weir.StreamStore,
) -> None:
    store.update_stream(ORDERS, rename_columns=["city -> town"])  # nobody reads
    store.create_reader_group("unknown", [ORDERS])
    assert "no consumer is declared" in refused(store, rename_columns=["town -> city"])
    consumer(store, "elsewhere", function="somewhere.else:work")
    assert "can't be looked at here" in refused(store, drop_columns=["town"])
    store.update_stream(ORDERS, more_columns="", tags=["x"])  # no column changes
    assert store.update_stream(ORDERS, rename_columns=["town -> city"], allow_named=True)[
        "changed"
    ] == {"town": "renamed to city"}


def test_a_store_that_does_not_name_a_column_is_no_hindrance_and_one_that_does_is_listed(
    store: weir.StreamStore, database: Database
) -> None:
    define(database, "shop/value", key="upper(customer)", value="n, lower(city) AS town")
    store.update_stream(ORDERS, rename_columns=["customer -> client", "n -> m", "city -> the city"])
    assert defined(database) == [("upper(client)", "m AS n, lower(`the city`) AS town", "", None)]
    said = "adjunct store shop/value is outdated, because column 'm'"
    assert said in refused(store, drop_columns=["m"])
    plan = store.update_stream(ORDERS, drop_columns=["m"], dry_run=True)
    assert defined(database)[0][3] is None
    done = store.update_stream(ORDERS, drop_columns=["m"], allow_named=True)
    assert done["named_by"] == plan["named_by"]
    with raises("adjunct_definition_invalid shop/value 'm' value dropped names"):
        begin_build(database, "shop/value", builder="b", lease=9.0)
    given = {"value": "m AS n"}  # a column m that comes later may be meant
    update_store(database, "shop/value", {}, given, request_id=unique("update"))
    assert isinstance(begin_build(database, "shop/value", builder="b", lease=9.0), Build)


def test_what_a_store_would_mix_with_what_it_has_is_refused_in_any_case(
    store: weir.StreamStore, database: Database
) -> None:
    define(database, "shop/key", key="upper(city)", value="n", delete_when="city = ''")
    with raises("columns_in_use store shop/key 'city' dropped delete_adjunct_store"):
        store.update_stream(ORDERS, drop_columns=["city"], allow_named=True)
    for changes in (
        ColumnChanges(widen=[column("n", "long")]),
        ColumnChanges(add=[column("gate", "integer", "7")]),
    ):
        with raises("columns_in_use store shop/key delete_adjunct_store"):
            update_stream(
                database, stream_name(ORDERS), {}, column_changes=changes,
                allowing=allowing(True, ()), request_id=unique("update"),
            )  # fmt: skip
    store.update_stream(ORDERS, rename_columns=["n -> m"])
    assert defined(database) == [("upper(city)", "m", "city = ''", None)]


def test_a_store_of_whole_events_or_with_a_function_is_listed(
    store: weir.StreamStore, database: Database
) -> None:
    define(database, "shop/whole")
    assert "shop/whole keeps all columns, and has 'n' renamed to m" in refused(
        store, rename_columns=["n -> m"]
    )
    store.update_stream(ORDERS, rename_columns=["n -> m"], allow_named=True)
    define(database, "shop/f", value="test_column_users:totals", value_columns="n INT")
    assert "shop/f is outdated, because column 'city'" in refused(store, drop_columns=["city"])
    define(database, "shop/gone", value="elsewhere:f", value_columns="n INT")
    said = refused(store, rename_columns=["customer -> client"])
    assert "shop/gone is outdated, because column 'customer'" in said


def define(database: Database, name: str, **definition: str) -> None:
    define_store(
        database, name, stream_name(ORDERS), AdjunctConfiguration(),
        AdjunctDefinition(**definition), request_id=unique("define"),
    )  # fmt: skip


def defined(database: Database) -> list[Any]:
    sql = "SELECT key, value, delete_when, outdated FROM adjunct_definition"
    return [tuple(row) for row in rows(database, sql)]


@pytest.mark.parametrize("written", ["a", "a -> ", "-> b", "a=b"])
def test_what_is_no_rename_is_refused(store: weir.StreamStore, written: str) -> None:
    with raises("argument_invalid"):
        store.update_stream(ORDERS, rename_columns=[written])


def test_a_default_without_a_column_is_refused(store: weir.StreamStore) -> None:
    with raises("argument_invalid added"):
        store.update_stream(ORDERS, defaults=["gate = 7"])


def test_a_function_that_says_no_module_has_a_name_for_lineage() -> None:
    known: dict[str, Any] = {}
    exec("def late(events): return events", known)  # noqa: S102  # as some notebooks do
    del known["late"].__module__
    assert known["late"].__module__ is None
    assert source_of(known["late"]) == Function("__main__:late", "")
