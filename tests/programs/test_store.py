"""The object that `weir.open` returns, beside the forms."""

import inspect
import subprocess
import sys
import warnings
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sqlalchemy import text

import weir
from tests.raises import raises
from tests.world.servers import weir_server
from weir.controller.ownership import read_installation
from weir.database.connection import Database
from weir.errors import InvalidInput
from weir.installation.opened import close_shared
from weir.operations.form import is_required, parse
from weir.operations.jobs import FORMS
from weir.programs.opening import shared
from weir.settings import Settings
from weir.warehouse.marker import Marker, write_marker

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def store(database: Database, settings: Settings) -> Iterator[weir.StreamStore]:
    write_marker(settings.warehouse, Marker(read_installation(database).installation_id))
    with weir.open(settings=settings, source="shop") as opened:
        yield opened
    close_shared()


def value(store: weir.StreamStore, sql: str) -> Any:
    return store.database.transaction(lambda c: c.execute(text(sql)).scalar_one())


def test_rows_are_told_while_another_thread_loads_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    from weir.arrow.tables import as_table

    monkeypatch.setitem(sys.modules, "pandas", ModuleType("pandas"))
    with raises("frame_unsupported"):
        as_table(5)


def test_settings_beside_a_database_are_refused(settings: Settings) -> None:
    with raises("arguments_conflict"):
        weir.open("host=nowhere", "/nowhere", settings=settings)


@pytest.mark.parametrize(
    "wrong", [{"database": 5}, {"warehouse": b"x"}, {"source": 5}, {"settings": 5}, {"spark": 5}]
)
def test_arguments_of_another_kind_are_refused_when_it_is_opened(wrong: dict[str, Any]) -> None:
    with raises("argument_invalid" if "spark" not in wrong else "session_unsupported"):
        weir.open(**wrong)


def test_what_is_shown_of_it_has_no_password(tmp_path: Path) -> None:
    store = weir.open("postgresql://me:s3cret@nowhere/weir", tmp_path)
    assert repr(store) == f"<StreamStore of {tmp_path}, as program, by pyarrow>"
    assert "s3cret" not in repr(store.settings)


def test_rows_of_every_kind_are_appended_and_read(store: weir.StreamStore) -> None:
    polars = pytest.importorskip("polars")
    tags: Any = ("small",)  # in place of a list
    made = store.create_stream("shop/orders", "customer", segments=2, tags=tags)
    assert made["stream"] == "shop/orders"
    rows = [{"customer": "a", "amount": 1}, {"customer": "b", "amount": 2}]
    kinds = [rows, pa.Table.from_pylist(rows), pd.DataFrame(rows), polars.DataFrame(rows),
             pa.RecordBatch.from_pylist(rows), pa.table({"customer": ["a", "b"]})]  # fmt: skip
    for one in kinds:
        assert store.append("shop/orders", one).events == 2
    assert store.count("shop/orders") == 12
    read = store.read("shop/orders", order="stream", columns=["customer", "amount"])
    assert read["customer"].to_pylist() == ["a", "b"] * 6
    assert read["amount"].to_pylist() == [1, 2] * 5 + [None, None]
    assert store.tail("shop/orders", 1)["customer"].to_pylist() == ["b"]
    assert value(store, "SELECT count(*) FROM transactions WHERE source = 'shop'") == 6
    for _ in range(2):
        again = store.append("shop/orders", rows, writer_id="w", batch_id="1")
    assert again.repeated
    for given in ({"complete_until": "done"}, {"batch_id": "1"}):
        with raises("argument_missing writer_id"):
            store.append("shop/orders", rows, **given)
    with raises("argument_invalid batch_id 7 '7'"):
        store.append(
            "shop/orders", rows, writer_id="w",
            batch_id=7,  # type: ignore[arg-type]  # it is wrong on purpose
        )  # fmt: skip
    with raises("argument_invalid columns customer"):
        store.read("shop/orders", columns="customer")
    with raises("columns_invalid shop/orders such"):
        store.append("shop/orders", [])
    assert store.append("shop/orders", [{"customer": "a", "amount": None}]).events == 1
    with raises("bad_rows"):
        store.append("shop/orders", [{"customer": None}])


def test_a_column_that_a_dictionary_lacks_is_null_and_no_value_changes_its_kind() -> None:
    from datetime import UTC, date, datetime

    from weir.arrow.tables import as_table

    table = as_table([{"a": 1}, {"b": [1, 2]}, {"a": 2.5, "c": {"x": 1}}, {"c": {"y": "z"}}])
    assert table.to_pylist() == [
        {"a": 1.0, "b": None, "c": None},
        {"a": None, "b": [1, 2], "c": None},
        {"a": 2.5, "b": None, "c": {"x": 1, "y": None}},
        {"a": None, "b": None, "c": {"x": None, "y": "z"}},
    ]
    assert as_table([]).num_rows == 0
    local, utc = datetime(2026, 1, 1, 5), datetime(2026, 1, 1, 5, tzinfo=UTC)
    for pair in (
        ("a", b"a"), (True, 1), (1, True), (date(2026, 1, 1), local), (local, date(2026, 1, 1)),
        (local, utc), (utc, local), ("1", 1), (2**60 + 1, 0.5), (2**70, 1), ({1}, {2}),
        ([1], ["a"]), ([b"a"], ["a"]), ({"x": local}, {"x": utc}), ({"x": 1}, 5),
        ([local], [utc]), (object(), object()),
    ):  # fmt: skip
        with raises("bad_rows 'v"):
            as_table([{"v": one} for one in pair])
        if not isinstance(pair[0], (set, int)) or isinstance(pair[0], bool):
            with raises("bad_rows"):
                as_table(pd.DataFrame({"v": pd.Series(pair, dtype=object)}))
    with raises("columns_invalid 1 texts"):
        as_table([{1: 2}])
    empty: Any
    for empty in (None, [], {"y": None}, [[]], [None], ()):
        assert as_table([{"v": empty}]).num_rows == 1
    same = [1, np.int64(2), 0.5, np.float32(0.5)]
    assert as_table([{"v": one} for one in same])["v"].to_pylist() == [1.0, 2.0, 0.5, 0.5]
    nothing = pd.DataFrame({"v": pd.Series(["x", float("nan"), None, pd.NaT], dtype=object)})
    assert as_table(nothing)["v"].to_pylist() == ["x", None, None, None]
    for wrong in (5, "text", "", b"", {"v": [1]}, iter([{"v": 1}])):
        with raises("frame_unsupported"):
            as_table(wrong)
    with raises("frame_unsupported row 1 NoneType"):
        as_table([{"v": 1}, None])
    with raises("bad_rows Duplicate"):
        as_table(pd.DataFrame([[1, 2]], columns=["v", "v"]))
    frame = pd.DataFrame({"k": ["a"], "n": [1]})
    with raises("columns_invalid k reset_index"):
        as_table(frame.set_index("k"))
    assert as_table(frame[frame.n > 0]).column_names == ["k", "n"]
    with raises("bad_rows"):
        as_table(pd.DataFrame({"k": ["a", 1]}))


def test_every_action_is_a_method_with_the_arguments_of_its_form() -> None:
    for action, form in FORMS.items():
        method = getattr(weir.StreamStore, action)
        signature = inspect.signature(method)
        known = {one.name: one for one in fields(form)}
        assert list(signature.parameters) == ["self", *known], action
        for name, one in known.items():
            parameter = signature.parameters[name]
            assert (parameter.default is inspect.Parameter.empty) == is_required(one)
            assert f"`{name}`: {one.metadata['description']}" in method.__doc__
        assert method.__doc__.startswith(inspect.cleandoc(form.__doc__ or "-"))
        assert method.__name__ == action


def test_an_action_refuses_what_its_form_refuses_with_the_same_words(
    store: weir.StreamStore,
) -> None:
    for action, form in FORMS.items():
        known = {one.name: one for one in fields(form)}
        wrong: list[dict[str, Any]] = [{"no_such_argument": 1}]
        wrong += [{name: object()} for name in known]
        if any(map(is_required, known.values())):
            wrong.append({})
        for given in wrong:
            with pytest.raises(InvalidInput) as by_form:
                parse(form, given)
            with pytest.raises(InvalidInput) as by_method:
                getattr(store, action)(**given)
            assert (by_method.value.code, by_method.value.sentence) == (
                by_form.value.code, by_form.value.sentence,
            )  # fmt: skip
    with raises("argument_invalid create_stream 3"):
        store.create_stream("a/b", "k", "c")  # type: ignore[call-arg,arg-type]
    with raises("arguments_conflict seal_stream stream"):
        store.seal_stream("a/b", stream="a/b")  # type: ignore[misc]  # it is wrong on purpose


def test_actions_do_what_jobs_do_and_are_recorded(store: weir.StreamStore) -> None:
    store.create_stream("shop/orders", "customer")
    store.append("shop/orders", [{"customer": "a"}])
    streams: Any = ("shop/orders",)  # in place of a list
    group = store.create_reader_group("totals", streams, start="tail")
    assert group["reader_group"] == "totals"
    assert store.checkpoint_reader_group("totals", "here")["checkpoint"] == "here"
    with raises("stream_exists shop/orders"):
        store.create_stream("shop/orders", "customer")
    store.delete_reader_group("totals")
    assert store.truncate_stream("shop/orders", "tail", dry_run=False)["events"] == 1
    with pytest.warns(weir.TruncatedWarning, match="1 event"):
        assert store.count("shop/orders") == 0
    store.seal_stream("shop/orders")
    with raises("stream_not_active shop/orders sealed"):
        store.append("shop/orders", [{"customer": "a"}])
    store.delete_stream("shop/orders")
    runs = store.database.transaction(
        lambda c: c.execute(
            text("SELECT job, state, count(*) FROM job_runs GROUP BY 1, 2 ORDER BY 1, 2")
        ).all()
    )
    assert [tuple(one) for one in runs] == [
        ("checkpoint_reader_group", "succeeded", 1),
        ("create_reader_group", "succeeded", 1), ("create_stream", "failed", 1),
        ("create_stream", "succeeded", 1), ("delete_reader_group", "succeeded", 1),
        ("delete_stream", "succeeded", 1), ("seal_stream", "succeeded", 1),
        ("truncate_stream", "succeeded", 1),
    ]  # fmt: skip


def test_a_closed_store_is_refused_and_another_one_goes_on(
    store: weir.StreamStore, settings: Settings
) -> None:
    with weir.open(settings.database, settings.warehouse) as other:
        other.create_stream("shop/orders", "customer")
    with raises("not_open closed"):
        other.count("shop/orders")
    with raises("not_open closed"):
        other.seal_stream("shop/orders")
    assert store.count("shop/orders") == 0
    for half in ({"database": settings.database}, {"warehouse": settings.warehouse}):
        with raises("argument_missing database warehouse"):
            weir.open(**half)  # type: ignore[arg-type]


def test_who_shares_an_installation_shares_its_connections(
    store: weir.StreamStore, settings: Settings
) -> None:
    shared(settings).create_stream("shop/orders", "customer")
    sessions = """SELECT array_agg(pid ORDER BY pid) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name = 'weir'"""
    shared(settings).append("shop/orders", [{"customer": "a"}])
    before = value(store, sessions)
    for _ in range(3):
        shared(settings).append("shop/orders", [{"customer": "a"}])
        assert shared(settings).tail("shop/orders", 1).num_rows == 1
        assert shared(settings).read("shop/orders").num_rows > 1
        assert shared(settings).count("shop/orders") > 1
    assert value(store, sessions) == before


_WITHOUT_SPARK = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pyspark", "py4j", "airflow", "psutil"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocker())
import weir
from weir.errors import InvalidInput
with weir.open(*sys.argv[1:]) as store:
    store.create_stream("shop/orders", "lower(customer)", event_time="timestamp(`at`)")
    store.append("shop/orders", [{"customer": "a", "at": "2026-01-01"}])
    assert store.read("shop/orders")["customer"].to_pylist() == ["a"]
    store.update_stream("shop/orders", tags=["small"])
    store.create_reader_group("totals", ["shop/orders"])
    store.create_stream("shop/copies", "customer", schema="customer STRING, at STRING")
    for batch in store.reader("totals"):
        batch.commit({"stream:shop/copies": batch.events})
    store.create_reader_group("again", ["shop/orders"])
    done = store.process("again", function="copy:copy", outputs=["stream:shop/copies"])
    assert done["events"] == 1, done
    assert store.read("shop/copies")["customer"].to_pylist() == ["a", "a"]
    for work in (
        lambda: store.reader("totals", engine="spark"),
        lambda: store.process("totals", function="json:dumps", outputs=["stream:shop/more"],
                              engine="spark"),
        lambda: store.spark,
        lambda: weir.spark.Reader,
    ):
        try:
            work()
        except InvalidInput as error:
            assert error.code == "dependency_missing", error
            assert "pip install 'weir-streams[spark]'" in error.sentence, error
        else:
            raise AssertionError(work)
"""


def test_streams_are_made_written_and_read_without_spark(
    store: weir.StreamStore, settings: Settings
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_SPARK, settings.database, settings.warehouse],
        env={"PYTHONPATH": str(REPOSITORY / "plugins"), "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert store.count("shop/orders") == 1
    assert store.count("shop/copies") == 2


def test_what_the_module_offers_is_there_and_told() -> None:
    assert dir(weir) == weir.__all__
    for name in weir.__all__:
        assert getattr(weir, name).__doc__
    with pytest.raises(AttributeError, match="no attribute 'appendd'"):
        weir.appendd  # noqa: B018
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "`rows`: a list of dictionaries" in (weir.StreamStore.append.__doc__ or "")


@pytest.mark.server
def test_a_store_outlives_a_restart_of_postgres(tmp_path: Path) -> None:
    with (
        weir_server() as server,
        weir.open(server.dsn("weir", "weir_app"), str(tmp_path / "warehouse")) as store,
    ):
        store.create_stream("shop/orders", "customer")
        store.append("shop/orders", [{"customer": "a"}])
        server.stop()
        server.start()
        store.append("shop/orders", [{"customer": "b"}])
        assert store.read("shop/orders")["customer"].to_pylist() == ["a", "b"]
