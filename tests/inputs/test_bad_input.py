"""Bad input at each job: one clear sentence, an exit status that says whether to try again, and
nothing half done."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.chance import some
from tests.crash.jobs import write_config
from tests.inputs.bad_inputs.made import GENERATORS, expand
from tests.inputs.conftest import Files
from tests.world.jobs import run_job
from weir import StreamStore
from weir.model.names import stream_name
from weir.operations.jobs import ACTIONS
from weir.reader_groups.groups.lifecycle import create_reader_group

UNKNOWN = "there is no stream s/nowhere"
# The job, its arguments, what the sentence must say.
CREATE = {"stream": "s/new", "routing_key": "k"}
CREATE_STREAM: list[tuple[dict[str, Any], str]] = [
    ({"stream": "../new"}, r"stream is '../new'"),
    ({"stream": "s/../new"}, r"stream is 's/../new'"),
    ({"stream": "S/New"}, r"stream is 'S/New'"),
    ({"stream": "s/new'; DROP TABLE stream"}, r"stream is"),
    ({"stream": "s/new.rejected"}, r"stream is"),
    ({"stream": "s/events"}, r"stream s/events already exists"),
    ({"routing_key": ""}, r"routing key is empty"),
    ({"routing_key": "k k k"}, r"'k k k' can't be understood"),
    ({"routing_key": "java_method('java.lang.System', 'getenv', k)"}, r"calls java_method\(\)"),
    ({"routing_key": "upper(reflect('a', 'b', k))"}, r"calls reflect\(\)"),
    ({"routing_key": "'constant'"}, r"uses no column"),
    ({"segments": 0}, r"segments is 0"),
    ({"segments": "3"}, r"segments is '3'"),
    ({"on_missing_key": "drop"}, r"on_missing_key is 'drop'"),
    ({"schema": "k STRING, n NUMBERS"}, r"columns 'k STRING, n NUMBERS' can't be read"),
    ({"schema": "n LONG"}, r"uses 'k', which is not among the columns"),
    ({"schema": "k STRING, _weir_x LONG"}, r"column '_weir_x' has a reserved name"),
    ({"schema": "k STRING, K LONG"}, r"column 'K' occurs twice"),
]
INGEST = {"stream": "s/events", "files": ["good.parquet"]}
INGESTS: list[tuple[dict[str, Any], str]] = [
    ({"stream": "s/nowhere"}, UNKNOWN),
    ({"stream": "nowhere"}, r"stream is 'nowhere'"),
    ({"files": ["../weir.toml"]}, r"'../weir.toml' is outside the configured roots"),
    ({"files": ["/etc/passwd"]}, r"'/etc/passwd' is outside the configured roots"),
    ({"files": ["missing.parquet"]}, r"'missing.parquet' does not exist"),
    ({"files": ["empty"]}, r"'empty' in .* has no files"),
    ({"files": []}, r"files is \[\]"),
    ({"files": "good.parquet"}, r"files is 'good.parquet'"),
    ({"files": ["good.parquet", "good.parquet"]}, r"an input file is named twice"),
    (
        {"files": ["no.parquet"]},
        r"'no.parquet' is not a Parquet file \(.*\); choose its real format\. \[",
    ),
    ({"files": ['["good.parquet"]']}, r"write good\.parquet as an entry of its own"),
    ({"files": ["plain"]}, r"'plain' does not show its format; choose parquet, csv or"),
    ({"files": ["good.parquet", "rows.csv"]}, r"'good.parquet' is parquet and 'rows.csv' is csv"),
    ({"files": ["types.parquet"]}, r"column 'n' is string, but long in stream s/events"),
    ({"files": ["other.parquet"]}, r"stream s/events has none of the columns x"),
    (
        {"files": ["keyless.parquet"]},
        r"2 of the rows have no routing key .*keyless.parquet', row 2.*update_stream",
    ),
    ({"files": ["without.parquet"]}, r"the rows have no column 'k'"),
    ({"files": ["reserved.parquet"]}, r"column '_Offset' has a reserved name"),
    ({"format": "avro"}, r"format is 'avro'"),
    ({"format": "csv", "separator": "||"}, r"separator is '\|\|'"),
    ({"separation": ";"}, r"there is no argument 'separation'"),
]
PROCESS = {
    "reader_group": "readers",
    "function": "tests.crash.functions:copies",
    "outputs": ["parquet:copies"],
}
PROCESSES: list[tuple[dict[str, Any], str]] = [
    ({"reader_group": "nobody"}, r"there is no reader group nobody"),
    ({"reader_group": "../x"}, r"reader_group is '../x'"),
    ({"function": "os:system"}, r"function 'os:system' is not in an allowed package"),
    ({"function": "tests.crash.functions:missing"}, r"can't be loaded"),
    ({"function": "tests.crash.functions:FOLDER"}, r"is not a function"),
    ({"function": "eval(1)"}, r"function is 'eval\(1\)'"),
    ({"outputs": ["parquet:../../out"]}, r"'../../out' is outside the configured roots"),
    ({"outputs": ["parquet:/etc/out"]}, r"'/etc/out' is outside the configured roots"),
    ({"outputs": ["jdbc:x"]}, r"outputs holds 'jdbc:x'"),
    ({"outputs": ["table:x"]}, r"'x' is not the name of a table"),
    ({"outputs": ["stream:Nowhere"]}, r"'Nowhere' is not a valid stream name"),
    ({"outputs": ["stream:s/nowhere"]}, UNKNOWN),
    ({"outputs": []}, "no function and outputs are given"),
    ({"order": "newest"}, r"order is 'newest'"),
]
OTHERS = [
    ("scale_stream", {"stream": "s/nowhere", "segments": ["0.0"]}, UNKNOWN),
    ("scale_stream", {"stream": "s/events", "segments": ["7.7"]}, r"7\.7"),
    ("scale_stream", {"stream": "s/events", "segments": ["first"]}, r"segments holds 'first'"),
    ("update_stream", {"stream": "s/nowhere", "tags": ["x"]}, UNKNOWN),
    ("update_stream", {"stream": "s/events"}, r"no setting is given"),
    ("update_stream", {"stream": "s/events", "target_rate": 5}, r"when scaling is 'fixed'"),
    ("update_stream", {"stream": "s/events", "more_columns": "n STRNG"}, r"can't be read"),
    ("update_reader_group", {"reader_group": "readers", "generation": 0}, r"no setting is given"),
    ("seal_stream", {"stream": "s/nowhere"}, UNKNOWN),
    ("delete_stream", {"stream": "s/nowhere"}, UNKNOWN),
    ("delete_stream", {"stream": "s/events"}, r"is active; first .*seal_stream.*s/events"),
    ("truncate_stream", {"stream": "s/nowhere", "cut": "0.0=1"}, UNKNOWN),
    ("truncate_stream", {"stream": "s/events", "cut": "0.0=999, 1.0=0"}, r"0\.0"),
    ("truncate_stream", {"stream": "s/events", "cut": "everything"}, r"everything"),
    ("create_reader_group", {"reader_group": "new", "streams": ["s/nowhere"]}, UNKNOWN),
    ("create_reader_group", {"reader_group": "N w", "streams": ["s/events"]}, r"'N w'"),
    ("create_reader_group", {"reader_group": "readers", "streams": ["s/events"]}, r"readers"),
    ("checkpoint_reader_group", {"reader_group": "nobody", "name": "x"}, r"group nobody"),
    ("checkpoint_reader_group", {"reader_group": "readers", "name": "a\nb"}, r"name is 'a\\nb'"),
]
CASES = [
    *(("create_stream", {**CREATE, **wrong}, says) for wrong, says in CREATE_STREAM),
    *(("ingest", {**INGEST, **wrong}, says) for wrong, says in INGESTS),
    *(("process", {**PROCESS, **wrong}, says) for wrong, says in PROCESSES),
    *OTHERS,
]


@pytest.fixture
def installed(files: Files, monkeypatch: pytest.MonkeyPatch) -> Files:
    """An installation with a stream, a group and input files, as jobs find it."""
    monkeypatch.setenv("WEIR_CONFIG", str(write_config(files.settings)))
    stream = files.create(segments=2)
    program = StreamStore(files.settings, files.database, "test")
    program.append(str(stream), [{"k": "a", "n": 1}, {"k": "b", "n": 2}])
    create_reader_group(files.database, "readers", [stream], request_id="readers")
    tables = {
        "good": {"k": ["a"], "n": [1]},
        "types": {"k": ["a"], "n": ["1"]},
        "other": {"x": [1]},
        "keyless": {"k": ["a", None, None], "n": [1, 2, 3]},
        "without": {"n": [1]},
        "reserved": {"k": ["a"], "_Offset": [1]},
    }
    for name, columns in tables.items():
        files.put(f"{name}.parquet", columns)
    for name in ("good.csv", "plain", "rows.csv"):
        files.put(name, "k,n\na,1\n")
    files.put("no.parquet", "not at all")
    (files.root / "empty").mkdir()
    return files


def state(files: Files) -> list[Any]:
    """All that a job may have left behind, but aborted appends and their garbage."""
    return [
        files.query(f"SELECT * FROM {what}")
        for what in (
            "streams ORDER BY stream",
            "segments ORDER BY segment",
            "data_files",
            "positions",
            "readers",
            "batches",
            "checkpoints",
            "transactions WHERE state <> 'aborted'",
        )
    ]


def without_code(said: str) -> str:
    """A sentence whose code was printed after it."""
    found = re.fullmatch(r"(.*) \[[a-z_]+\]", said)
    assert found, f"no code: {said}"
    return found[1]


def failed(job: str, arguments: Any, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Run a job that must fail; its exit status and its sentence, after checking the latter."""
    capsys.readouterr()
    status = run_job(job, ["--arguments", json.dumps(arguments)])
    printed = capsys.readouterr().out
    assert "Traceback" not in printed
    (line,) = [line for line in printed.splitlines() if " failed: " in line]
    said = line.split(" failed: ", 1)[1]
    sentence = without_code(said)
    assert printed.rstrip().endswith(line), "the sentence has more than one line"
    assert sentence.endswith(".") or "SQLSTATE" in sentence, sentence
    assert not re.search(r"\w\.\.( |$)", sentence), "two full stops"
    return status, said


def test_bad_input_fails_each_job_with_one_sentence_and_leaves_nothing_behind(
    installed: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    files = installed
    before = state(files)
    wrong = []
    for job, arguments, says in CASES:
        try:
            status, sentence = failed(job, arguments, capsys)
            assert status == 2, f"exit status {status}: {sentence}"
            assert re.search(says, sentence), sentence
            assert state(files) == before, "something was left behind"
        except AssertionError as error:
            wrong.append(f"{job} {arguments}: {str(error)[:400]}")
    assert not wrong, "\n".join(wrong)
    # What was written before it failed is known to be garbage, and each failure is on record.
    folders = {path for (path,) in files.query("SELECT path FROM garbage")}
    for path in Path(files.settings.warehouse).rglob("_weir_attempt=*"):
        relative = str(path.relative_to(files.settings.warehouse)) + "/"
        assert relative in folders or files.query(
            "SELECT FROM data_file WHERE path LIKE :p", p=relative + "%"
        )
    recorded = files.query("SELECT error, retryable FROM job_run WHERE state = 'failed'")
    assert len(recorded) > len(CASES) / 2, "those that name what is there are on record"
    assert all(error and retryable is False for error, retryable in recorded)


KINDS = [
    json.loads(line)
    for line in (Path(__file__).parent / "bad_inputs/kinds.jsonl").read_text().splitlines()
]
# What a person must never see of what is below.
RAW = re.compile(r"Py4J|psycopg2|Exception|Traceback|org\.apache")


def made(files: Files, file: list[Any]) -> str:
    """Make a file below the input root; returns its path there."""
    name, generator, arguments = file
    path = files.root / name
    path.parent.mkdir(exist_ok=True)
    GENERATORS[generator](path, **expand(arguments))
    return str(name)


def prepared(files: Files, kind: dict[str, Any], number: int) -> dict[str, Any]:
    """The arguments of a kind, whose stream and files are made."""
    given: dict[str, Any] = expand(kind.get("arguments", {}))
    if kind["job"] == "create_stream":
        return {"stream": f"s/new{number}", "routing_key": "id", **given}
    if kind["job"] != "ingest" or "stream" in given:
        return given
    stream = files.create(f"s/kind{number}", **{"key": "id", **kind.get("stream", {})})
    paths = []
    if "before" in kind:
        files.ingest(stream, made(files, kind["before"]))
    if "beside" in kind:
        paths.append(made(files, kind["beside"]))
    paths.append(made(files, kind["file"]))
    return {"stream": str(stream), "files": paths, **given}


def ran(
    kind: dict[str, Any], given: dict[str, Any], printed: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    """Run a job as its file does; its exit status and what it printed."""
    printed.readouterr()
    words = expand(kind["raw"]) if "raw" in kind else json.dumps(given)
    status = run_job(kind["job"], ["--arguments", words])
    return status, printed.readouterr().out


def check_kind(
    files: Files, kind: dict[str, Any], number: int, printed: pytest.CaptureFixture[str]
) -> None:
    """What must hold of a job that was given this."""
    given = prepared(files, kind, number)
    before = state(files)
    status, out = ran(kind, given, printed)
    allowed = kind["status"] if isinstance(kind["status"], list) else [kind["status"]]
    assert status in allowed, f"exit status {status}: {out[-600:]}"
    assert files.value("SELECT count(*) FROM transaction WHERE state = 'open'") == 0
    if status == 0:
        check_accepted(files, kind, given)
        return
    (line,) = [line for line in out.splitlines() if " failed: " in line]
    said = line.split(" failed: ", 1)[1]
    sentence = without_code(said)
    assert out.rstrip("\n").endswith(line), "the sentence has more than one line"
    assert not RAW.search(out), out[-600:]
    assert len(sentence) < 1500, "the sentence repeats too much of the input"
    assert re.search(kind["says"], said), said
    assert said.endswith(f" [{kind['code']}]"), said
    assert state(files) == before, "something was left behind"


def check_accepted(files: Files, kind: dict[str, Any], given: dict[str, Any]) -> None:
    """What was appended is what the file holds."""
    if kind["job"] != "ingest":
        return
    stream = stream_name(given["stream"])
    events = files.events(stream)
    if "rows" in kind:
        assert [[shown(value) for value in row] for row in events] == kind["rows"]
    if "events" in kind:
        assert len(events) == kind["events"]
    rejected = files.value(
        "SELECT coalesce(sum(rejected), 0)::int FROM transactions WHERE stream = :s", s=str(stream)
    )
    assert rejected == kind.get("rejected", 0)


def shown(value: Any) -> Any:
    """A value as the data file writes it."""
    return value if isinstance(value, (str, int, float, list)) or value is None else str(value)


def check_kinds(
    files: Files, kinds: list[dict[str, Any]], printed: pytest.CaptureFixture[str]
) -> None:
    wrong = []
    for number, kind in enumerate(kinds):
        try:
            check_kind(files, kind, number, printed)
        except Exception as error:  # all kinds are tried, and all that are wrong are shown
            wrong.append(f"{kind['kind']}: {type(error).__name__}: {str(error)[:700]}")
    assert not wrong, f"{len(wrong)} of {len(kinds)}:\n" + "\n".join(wrong)
    # What was written before it failed is known to be garbage.
    folders = {path for (path,) in files.query("SELECT path FROM garbage")}
    for path in Path(files.settings.warehouse).rglob("_weir_attempt=*"):
        relative = str(path.relative_to(files.settings.warehouse)) + "/"
        if any(path.rglob("*.parquet")):
            assert relative in folders or files.query(
                "SELECT FROM data_file WHERE path LIKE :p", p=relative + "%"
            )


def test_kinds_of_bad_input_of_many_classes_are_answered_with_one_final_sentence(
    installed: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    of_each_class = [kind for kind in KINDS if kind.get("ci")]
    check_kinds(installed, some(of_each_class, "kinds", least=len(of_each_class) // 8), capsys)


@pytest.mark.release
@pytest.mark.jvm  # some kinds are of jobs that start Spark
@pytest.mark.timeout(600)
def test_every_kind_of_bad_input_is_answered_with_one_final_sentence(
    installed: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    check_kinds(installed, KINDS, capsys)


def test_unreachable_database_is_named_without_its_password_and_may_be_tried_again(
    installed: Files,
) -> None:
    database = "host=127.0.0.1 port=9 dbname=weir user=weir_app password=secret"
    config = write_config(installed.settings, database=database, connect_patience=1)
    done = subprocess.run(
        [sys.executable, ACTIONS["stream_cuts"].file],
        env={"WEIR_CONFIG": str(config), "PYTHONPATH": "plugins", "PATH": "/usr/bin:/bin"},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 1
    last = done.stdout.splitlines()[-1]
    assert last.startswith("weir: stream_cuts failed: the database (host=127.0.0.1 port=9")
    assert "secret" not in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
