"""The commands that look, as people type them. No JVM may be started for them."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from tests.chance import random_for
from tests.raises import raises
from tests.terminal.conftest import Done
from tests.world.streams import Lane
from weir.controller.ownership import read_installation
from weir.database.connection import Database
from weir.kernel.values import rows_of
from weir.model.segment import segment_name
from weir.operations.jobs import FORMS
from weir.programs.opening import shared
from weir.settings import Settings, config_of, load
from weir.warehouse.marker import Marker, write_marker

Weir = Callable[..., Done]


@pytest.fixture
def lane(database: Database, settings: Settings) -> Lane:
    write_marker(settings.warehouse, Marker(read_installation(database).installation_id))
    return Lane.made(database, segments=3, name="shop/orders")


def append(settings: Settings, batch: str, keys: list[str]) -> None:
    rows = pa.table({"key": keys, "batch": [batch] * len(keys), "n": range(len(keys))})
    shared(settings).append("shop/orders", rows, writer_id="w", batch_id=batch)


def test_what_takes_space_is_said_with_what_frees_it(
    weir: Weir, lane: Lane, database: Database, settings: Settings
) -> None:
    append(settings, "one", [f"k{n}" for n in range(20)])
    [stream] = weir("streams", "--json").json
    whole = stream["bytes"]
    assert (whole > 0, stream["garbage_bytes"]) == (True, 0)

    def held() -> dict[str, dict[str, object]]:
        rows = weir("disk", "--json").json["largest"]
        return {row["kind"]: row for row in rows if row["stream"] == "shop/orders"}

    assert held()["events"]["bytes"] == whole
    assert "retention is keep" in str(held()["events"]["freed_by"])
    assert "garbage" not in held()

    done = weir("truncate-stream", "shop/orders", "--cut", "tail", "--no-dry-run")
    assert done.status == 0, done.err
    [stream] = weir("streams", "--json").json
    assert (stream["bytes"], stream["garbage_bytes"]) == (0, whole)
    after = held()
    assert after["events"]["bytes"] == 0
    assert (after["garbage"]["name"], after["garbage"]["bytes"]) == ("truncated", whole)
    assert after["garbage"]["since"] is not None
    assert "grace_period" in str(after["garbage"]["freed_by"])

    shown = weir("disk", "--limit", "1")
    assert shown.out.split()[:2] == ["kind", "bytes"]
    assert {"events", "garbage", "database"} <= set(shown.out.split())
    assert "more with" in shown.err
    assert "Parquet outputs" in shown.err
    totals = {one["kind"]: one["bytes"] for one in weir("disk", "--json").json["totals"]}
    assert totals["garbage"] == whole
    assert totals["database"] > 0


def test_what_there_is_is_shown_as_a_table_and_as_json(
    weir: Weir, lane: Lane, settings: Settings
) -> None:
    append(settings, "one", [f"k{n}" for n in range(20)])
    made = weir("create-reader-group", "audit", "--streams", "shop/orders", "--no-subscriber")
    assert made.status == 0, made.err

    shown = weir("streams")
    assert shown.status == 0
    assert shown.out.splitlines()[0].split()[:4] == ["stream", "state", "routing_key", "events"]
    assert shown.out.splitlines()[1].split()[:4] == ["shop/orders", "active", "key", "20"]
    [stream] = weir("streams", "--json").json
    assert (stream["stream"], stream["events"]) == ("shop/orders", 20)

    [lag] = weir("lag", "audit", "--json").json
    assert (lag["reader_group"], lag["unread_events"], lag["lost_events"]) == ("audit", 20, 0)
    assert isinstance(lag["waiting"], float)
    assert weir("lag").out.split()[7:10] == ["audit", "shop/orders", "20"]

    last = weir("tail", "shop/orders", "-n", "2", "--json").lines
    assert [row["n"] for row in last] == [18, 19]
    assert last[1]["_segment"].endswith(".0")
    assert len(weir("tail", "shop/orders").out.splitlines()) == 11
    few = weir("tail", "shop/orders", "-n", "1", "--columns", "n").out
    assert few.split() == ["n", "_segment", "_offset", "_clock", "19", *few.split()[5:]]

    all_of_it = weir("read", "shop/orders", "--json").lines
    assert sorted(row["n"] for row in all_of_it) == list(range(20))
    assert weir("read", "shop/orders", "--since", last[1]["_clock"], "--json").lines == []
    until = weir("read", "shop/orders", "--until", last[1]["_clock"], "--json").lines
    assert len(until) == 20
    some = weir("read", "shop/orders", "--limit", "5")
    assert len(some.out.splitlines()) == 6
    assert "only the first 5" in some.err

    assert weir("lineage", "shop/orders", "--depth", "9999999999").status == 0
    whole = weir("lineage", "shop/orders", "--json").json
    part = weir("lineage", "shop/orders", "--limit", "1")
    assert len(part.out.splitlines()) == 2, whole
    assert f"only 1 of {len(whole)} (" in part.err

    why = weir("why", "shop/orders")
    assert "retention is keep" in why.out
    kept = weir("why", "shop/orders", "--json").json["kept"]
    assert sum(one["events"] for one in kept) == 20
    path = str(lane.value("SELECT min(path) FROM data_file WHERE stream_id = :s"))
    assert "so the stream keeps everything" in weir("why", "shop/orders", path).out


def test_events_of_a_span_of_event_times_are_read_alone(
    weir: Weir, lane: Lane, settings: Settings
) -> None:
    lane = Lane.made(lane.database, event_time="at", name="shop/timed")
    days = [datetime(2013, month, day) for month in (1, 2, 3) for day in (1, 28)]
    table = pa.table({"key": [f"{one:%m%d}" for one in days], "at": days})
    shared(settings).append(str(lane.name), table)

    def found(*words: str) -> list[str]:
        return sorted(one["key"] for one in weir("read", "shop/timed", *words, "--json").lines)

    february = ["--event-time-since", "2013-02-01", "--event-time-until", "2013-03-01"]
    assert found(*february) == ["0201", "0228"]
    assert found(*february, "--where", "key > '0201'") == ["0228"]
    assert found(*february[:2]) == ["0201", "0228", "0301", "0328"]


def test_events_are_read_and_erased_by_a_condition(
    weir: Weir, lane: Lane, settings: Settings
) -> None:
    append(settings, "one", ["Ann", "bob", "ann"])
    append(settings, "two", ["cem", "ANN"])

    def found(*words: str) -> list[tuple[str, int]]:
        lines = weir("read", "shop/orders", *words, "--json").lines
        return sorted((row["key"], row["n"]) for row in lines)

    of_ann = ["--where", "lower(key) = 'ann' AND n < 2"]
    assert found(*of_ann) == [("ANN", 1), ("Ann", 0)]
    assert len(found(*of_ann, "--limit", "1")) == 1
    assert found("--where", "int(key) > 0 OR n = 2") == [("ann", 2)], "'Ann' is no number"
    for condition, code in (
        ("n >", "expression_invalid"), ("m > 5", "expression_not_computable"),
        ("n", "expression_invalid"),
    ):  # fmt: skip
        wrong = weir("read", "shop/orders", "--where", condition)
        assert (wrong.status, len(wrong.err.splitlines())) == (2, 1), wrong.err
        assert f"[{code}]" in wrong.err

    erase = ["erase", "shop/orders", "--reason", "asked", "--condition", of_ann[1]]
    assert "2 events would be erased" in weir(*erase).err
    gone = weir(*erase, "--no-dry-run")
    assert gone.status == 0, gone.err
    assert found() == [("ann", 2), ("bob", 1), ("cem", 0)]


def test_an_empty_installation_says_what_to_do_next(weir: Weir) -> None:
    assert "`weir create`" in weir("streams").err
    assert "`weir create-reader-group`" in weir("lag").err
    assert weir("streams", "--json").out == "[]\n"


def test_a_picture_is_written_to_a_file_or_printed(
    weir: Weir, lane: Lane, settings: Settings, tmp_path: Path
) -> None:
    append(settings, "one", ["a", "b", "c"])
    printed = weir("picture", "shop/orders")
    assert (printed.status, printed.err) == (0, "")
    assert printed.out.startswith("<!doctype html>")
    assert weir("picture", "shop/orders", "--json").json["html"].startswith("<!doctype html>")
    done = weir("picture", "shop/orders", "-o", "map.html")
    assert (done.status, done.out) == (0, "")
    assert "map.html has the picture of shop/orders" in done.err
    assert (tmp_path / "map.html").read_text().startswith("<!doctype html>")
    assert weir("picture", "shop/orders", "--out", "m.html", "--json").json == {"out": "m.html"}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("tail shop/none", "stream_not_found", "shop/none"),
        ("tail Shop", "name_invalid", "'Shop'"),
        ("tail", "argument_invalid", "arguments are required: stream"),
        ("tail shop/orders -n ten", "argument_invalid", "-n is 'ten'"),
        ("tail shop/orders -n 0", "argument_invalid", "at least 1"),
        ("tail shop/orders --columns n,m", "column_unknown", "'m'"),
        ("tail shop/orders -n 99999999999999999999", "argument_invalid", "at most 18 digits"),
        ("lineage shop/orders --from 99999999999999999999", "argument_invalid", "--from"),
        ("read shop/orders --limit -1", "argument_invalid", "--limit"),
        ("lineage shop/none", "stream_not_found", "shop/none"),
        ("picture shop/none", "stream_not_found", "shop/none"),
        ("picture nobody", "group_not_found", "nobody"),
        ("picture shop/orders --since yesterdayish", "time_invalid", "yesterdayish"),
        ("picture shop/orders --out no/folder/map.html", "argument_invalid", "map.html"),
        ("picture shop/orders --out map.svg", "argument_invalid", "such as map.html"),
        ("lineage shop/orders --segment 7.0", "segment_not_found", "7.0"),
        ("read shop/orders --since 2999-01-01", "time_in_future", "2999"),
        ("lag nobody", "group_not_found", "'nobody'"),
        ("outputs nobody", "group_not_found", "nobody"),
        ("outputs nobody --batch newest", "argument_invalid", "--batch is 'newest'"),
        ("why shop/none", "stream_not_found", "shop/none"),
        ("taill shop/orders", "argument_invalid", "no command 'taill' (did you mean 'tail'?)"),
        (
            'apply --text {"streams":{"a/b":{"routing_kee":"k"}}}',
            "declarations_invalid",
            "did you mean 'routing_key'?",
        ),
        ("tail shop/orders twice", "argument_invalid", "twice; `weir tail --help` says more"),
        ("create-reader-group audit", "argument_missing", "--streams is missing"),
        ("compact shop/none", "stream_not_found", "shop/none"),
        ("compact --streams shop/orders", "argument_invalid", "`weir compact --help` says more"),
        ("create shop/x --key order-id", "expression_invalid", "backquotes"),
        ("create shop/x --key k --max-segments 4", "arguments_conflict", "--max-segments has no"),
        ("scale-stream shop/orders --segments 0.0 --parts two", "argument_invalid", "'two'"),
        ("truncate-stream shop/orders --cut nowhere", "position_invalid", "nowhere"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(
    weir: Weir, lane: Lane, settings: Settings, words: str, code: str, said: str
) -> None:
    append(settings, "one", ["a"])
    done = weir(*words.split())
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("weir: ")
    assert len(done.err.splitlines()) == 1, done.err
    assert said in done.err
    refused = weir(*words.split(), "--json")
    assert refused.status == 2
    assert json.loads(refused.out)["error"]["code"] == code


def test_every_job_is_a_command_with_the_descriptions_of_its_form(
    capsys: pytest.CaptureFixture[str], weir: Weir
) -> None:
    for job, form in FORMS.items():
        name = {"create_stream": "create"}.get(job, job.replace("_", "-"))
        with pytest.raises(SystemExit):
            weir(name, "--help")
        shown = "".join(capsys.readouterr().out.split())
        for known in form.__dataclass_fields__.values():
            assert "".join(known.metadata["description"].split()) in shown


def test_a_job_run_by_hand_is_recorded_with_its_report_or_its_error(weir: Weir, lane: Lane) -> None:
    scaled = weir("scale-stream", "shop/orders", "--segments", "0.0", "--json")
    assert [one[0] for one in scaled.json["created"]] == ["3.1", "4.1"]
    assert weir("scale-stream", "shop/orders", "--segments", "0.0").status == 2
    runs = lane.rows("SELECT dag_id, job, state, error FROM job_run ORDER BY started_at")
    assert [row[:3] for row in runs] == [
        ("by hand", "scale_stream", "succeeded"), ("by hand", "scale_stream", "failed"),
    ]  # fmt: skip
    assert "0.0" in runs[1].error


def test_a_file_of_declarations_is_applied_from_where_the_person_is(
    weir: Weir, lane: Lane, tmp_path: Path
) -> None:
    declared = "reader_groups:\n  audit: {streams: [shop/orders], subscriber: false}\n"
    (tmp_path / "shop.yaml").write_text(declared)
    shown = weir("apply", "shop.yaml", "--dry-run", "--json").json
    assert len(shown["changes"]) == 1
    assert weir("lag", "--json").json == []
    done = weir("apply", "shop.yaml")
    assert (done.status, done.out) == (0, "reader group audit: new\n1 changed, 0 are as declared\n")
    assert [one["reader_group"] for one in weir("lag", "--json").json] == ["audit"]
    assert weir("apply", "shop.yaml", "--json").json == {"changes": [], "unchanged": 1}
    assert weir("apply", "none.yaml").status == 2
    assert "give one of them" in weir("apply").err
    assert weir("apply", "--text", declared, "--json").json == {"changes": [], "unchanged": 1}
    (tmp_path / "long.yaml").write_text(declared + "#" * 10_000_000)
    assert "long.yaml' is longer than 10,000,000 bytes" in weir("apply", "long.yaml").err


def test_a_consumer_that_was_declared_is_run_by_the_name_of_its_group(
    weir: Weir, lane: Lane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = """
reader_groups: {audit: {streams: [shop/orders]}}
consumers: {audit: {function: "nowhere:audit", outputs: ["parquet:audit"]}}
"""
    (tmp_path / "shop.yaml").write_text(declared)
    assert "'nowhere:audit' is not in an allowed package" in weir("apply", "shop.yaml").err
    assert weir("lag", "--json").json == [], "nothing of the file was made"
    monkeypatch.setenv("WEIR_FUNCTION_PACKAGES", "nowhere")
    assert weir("apply", "shop.yaml").status == 0
    assert "'nowhere:audit' can't be loaded" in weir("process", "audit").err
    monkeypatch.delenv("WEIR_FUNCTION_PACKAGES")
    for words in ("audit none:f --output parquet:x", "audit --output parquet:x none:f"):
        assert "'none:f' can't be loaded" in weir("process", *words.split()).err


def test_without_a_command_it_says_what_there_is(weir: Weir) -> None:
    done = weir()
    assert (done.status, done.out.partition(" [")[0]) == (2, "usage: weir")


def test_a_configuration_of_another_user_is_not_taken_from_a_folder_above(tmp_path: Path) -> None:
    (tmp_path / "weir.toml").write_text("function_path = ['evil']\n")
    here = tmp_path / "mine"
    here.mkdir()
    assert config_of(here, os.geteuid()) == tmp_path / "weir.toml"
    if os.geteuid() == 0:  # whom everybody trusts
        os.chown(tmp_path / "weir.toml", 12_345, -1)
    with raises("setting_invalid WEIR_CONFIG"):
        config_of(here, os.geteuid() + 1)


@pytest.mark.parametrize("what", ["file", "folder", "link's folder"])
def test_a_configuration_that_everybody_may_write_is_not_taken(tmp_path: Path, what: str) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    (there / "weir.toml").write_text("warehouse = 'data'\n")
    (here / "weir.toml").symlink_to(there / "weir.toml")
    assert config_of(here, os.geteuid()) == there / "weir.toml"
    named = {"file": there / "weir.toml", "folder": there, "link's folder": here}[what]
    named.chmod(0o777)
    with raises("setting_invalid every WEIR_CONFIG"):
        config_of(here, os.geteuid())
    if what != "file":
        named.chmod(0o1777)  # as /tmp is
        assert config_of(here, os.geteuid()) == there / "weir.toml"


def test_paths_are_relative_to_the_file_that_a_link_leads_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    (there / "weir.toml").write_text("warehouse = 'data'\n")
    (here / "weir.toml").symlink_to(there / "weir.toml")
    monkeypatch.chdir(here)
    for environ in ({}, {"WEIR_CONFIG": "weir.toml"}):
        assert load(environ).warehouse == str(there / "data")


def test_what_events_hold_does_not_change_the_terminal(
    weir: Weir, lane: Lane, settings: Settings
) -> None:
    append(settings, "one", ["\x1b]0;title\x07", "\u202etxt.exe", "a\x9b2J"])
    shown = weir("tail", "shop/orders").out
    assert not {"\x1b", "\x07", "\u202e", "\x9b"} & set(shown)
    assert r"\x1b]0;title\x07" in shown
    assert r"\u202etxt.exe" in shown
    assert len({line.index("  one  ") for line in shown.splitlines()[1:]}) == 1
    exact = [row["key"] for row in weir("tail", "shop/orders", "--json").lines]
    assert "\x1b]0;title\x07" in exact
    assert "\x1b" not in weir("tail", "shop/orders", "--columns", "\x1b[2J").err


def test_lists_in_events_are_shown_as_they_are(weir: Weir, lane: Lane, settings: Settings) -> None:
    rows = pa.table({"key": ["a", "b", "c", "d"], "list": [[], ["x, y"], ["x", "y"], None]})
    shared(settings).append("shop/orders", rows, writer_id="w", batch_id="lists")
    for command in ("tail", "read"):
        shown = weir(command, "shop/orders", "--columns", "list").out
        assert {line.split("  ")[0] for line in shown.splitlines()} == {
            "list", "[]", '["x, y"]', '["x", "y"]', "-",
        }  # fmt: skip


def test_the_tail_is_the_end_of_the_write_order(
    lane: Lane, settings: Settings, database: Database
) -> None:
    random = random_for("tail")
    for batch in range(12):
        keys = [f"k{random.randrange(50)}" for _ in range(random.choice([1, 1, 5, 40]))]
        append(settings, str(batch), keys)
        if batch == 4:
            lane.scale("1.0", parts=2)
        if batch == 8:
            tail = lane.tail()
            cut = {name: random.randrange(end + 1) for name, end in tail.items()}
            lane.truncate(", ".join(f"{name}={end}" for name, end in cut.items()))
    whole = shared(settings).read("shop/orders", order="stream")
    for count in (1, 2, 7, 40, 10_000):
        found = shared(settings).tail("shop/orders", count)
        assert found.to_pylist() == whole.to_pylist()[-count:]
    lane.truncate(", ".join(f"{name}={end}" for name, end in lane.tail().items()))
    assert shared(settings).tail("shop/orders").num_rows == 0
    assert segment_name(whole["_segment"][0].as_py()).count(".") == 1
    with raises("argument_invalid 0"):
        shared(settings).tail("shop/orders", 0)


def test_looking_loads_nothing_that_it_does_not_need(weir: Weir, settings: Settings) -> None:
    program = (
        "import sys; from weir.terminal.__main__ import main; status = main(['streams']); "
        "loaded = {'pyspark', 'airflow', 'py4j', 'alembic'} & set(sys.modules); "
        "sys.exit(f'{status} {loaded}' if status or loaded else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_reading_stops_quietly_when_nobody_listens_any_more(
    weir: Weir, lane: Lane, settings: Settings
) -> None:
    append(settings, "many", [f"k{n}" for n in range(20_000)])
    reading = [sys.executable, "-m", "weir.terminal", "read", "shop/orders", "--json"]
    with subprocess.Popen(reading, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert b'"key"' in process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(300) == 0


def test_whatever_value_an_event_has_is_shown(weir: Weir, lane: Lane, settings: Settings) -> None:
    us = pa.timestamp("us")
    text = pa.array(["café", None])
    rows = pa.table(
        {
            "key": ["a", "b"],
            "day": pa.array([10_000_000, -800_000], pa.int32()).cast(pa.date32()),
            "at": pa.array([2**62, -(2**62)], pa.int64()).cast(pa.timestamp("us", "UTC")),
            "local": pa.array([2**62, 0], pa.int64()).cast(us),
            "text": text,
            "number": [float("nan"), float("-inf")],
            "bytes": [b"\x00\xff", b""],
            "amount": pa.array([None, "1.50"]).cast(pa.decimal128(38, 2)),
            "list": pa.array([[2**62], [None]], pa.list_(pa.int64())).cast(pa.list_(us)),
            "map": pa.array([[("x", float("inf"))], []], pa.map_(pa.string(), pa.float64())),
            "by_number": pa.array([[(1, "x")], None], pa.map_(pa.int32(), pa.string())),
            "by_day": pa.MapArray.from_arrays(
                [0, 1, 1], pa.array([10_000_000], pa.int32()).cast(pa.date32()), pa.array([None])
                .cast(pa.string()),
            ),
            "record": pa.StructArray.from_arrays([text, pa.array([1, 2])], ["text", "n"]),
        }
    )  # fmt: skip
    shared(settings).append("shop/orders", rows, writer_id="w", batch_id="odd")
    expected = [
        {
            "key": "a", "day": "+29349-01-26", "at": "+148108-07-06T14:00:27.387904+00:00",
            "local": "+148108-07-06T14:00:27.387904", "text": "café", "number": "NaN",
            "bytes": "AP8=", "amount": None, "list": ["+148108-07-06T14:00:27.387904"],
            "map": {"x": "Infinity"}, "by_number": [[1, "x"]], "by_day": [["+29349-01-26", None]],
            "record": {"text": "café", "n": 1},
        },
        {
            "key": "b", "day": "-0221-09-04", "at": "-144169-06-28T09:59:32.612096+00:00",
            "local": "1970-01-01T00:00:00", "text": None, "number": "-Infinity", "bytes": "",
            "amount": "1.50", "list": [None], "map": {}, "by_number": None, "by_day": [],
            "record": {"text": None, "n": 2},
        },
    ]  # fmt: skip
    for words in (["tail"], ["read"], ["read", "--where", "key IN ('a', 'b')"]):
        shown = weir(*words, "shop/orders")
        assert shown.status == 0, shown.err
        assert "café" in shown.out
        strict = [json.loads(line, parse_constant=pytest.fail)
                  for line in weir(*words, "shop/orders", "--json").out.splitlines()]  # fmt: skip
        found = [{k: v for k, v in row.items() if k[0] != "_"} for row in strict]
        assert sorted(found, key=lambda row: row["key"]) == expected
    damaged = pa.array([b"caf\xe9", None], pa.binary()).view(pa.string())  # no stream takes it
    assert rows_of(pa.table({"text": damaged})) == [{"text": r"caf\xe9"}, {"text": None}]


def test_days_beyond_pythons_are_those_of_the_calendar() -> None:
    for ordinal in (1, 365, 366, 146_097, 146_098, 3_652_059):
        day = date.fromordinal(ordinal)
        for eras in (-3, -1, 25, 26):
            days = ordinal - date(1970, 1, 1).toordinal() + eras * 146_097
            [[shown]] = [list(r.values()) for r in rows_of(pa.table([pa.array([days], pa.int32())
                         .cast(pa.date32())], ["day"]))]  # fmt: skip
            year = day.year + 400 * eras
            if not 1 <= year <= 9999:
                assert shown.endswith(f"{day:-%m-%d}")
                assert int(shown[: -len("-01-01")]) == year
