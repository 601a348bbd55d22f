"""The same files are the same events whichever engine reads them: rows, ranks, digests, and rows
that are set aside."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.digests import sum_of_rows
from tests.kernel.texts import DECLARED, GUESSED, NOT_KEPT
from tests.raises import raises
from tests.released import only
from tests.spark.installation import Installation, setting
from tests.spark.test_sessions import IGNORING
from weir.arrow.ingest import stage_files
from weir.inputs.append import FilesOf, append_files
from weir.inputs.files import find_inputs
from weir.inputs.unreadable import UnreadableFile, unreadable_now
from weir.kernel.text_options import TextOptions
from weir.model.names import StreamName
from weir.spark.appends import stage
from weir.spark.failures.causes import raising_own
from weir.spark.failures.unreadable import naming_files

CASES = ("guessed", "declared", "options", "json", "parquet")


def by_both(
    weir: Installation, name: str, format_: str, create: dict[str, Any], **options: Any
) -> list[Any]:
    """What streams have of a file by each engine: the result, files, columns, rejected rows."""
    inputs = find_inputs([name], weir.settings.input_roots, format_, TextOptions(**options))
    found = []
    engines: list[Any] = [weir.appender.stage_files, partial(stage_files, weir.opened)]
    for number, engine in enumerate(engines):
        stream = weir.create(f"s/by{number}", segments=2, **create)
        done = append_files(weir.opened, FilesOf(stream, inputs, again=str(number)), engine)
        found.append((done.events, done.rejected, facts(weir, stream)))
    return found


def facts(weir: Installation, stream: StreamName) -> Any:
    """The events with their ranks and digests, the columns, and the rows that were rejected."""
    of = "stream_id = (SELECT s.stream_id FROM stream s WHERE s.stream_name = :s)"
    files = weir.query(
        f"SELECT segment_id, sum(events) FROM data_file WHERE {of} GROUP BY 1 ORDER BY 1",
        s=str(stream),
    )
    digests = weir.query(f"SELECT clock, digest FROM time_index WHERE {of}", s=str(stream))
    sums = sorted(sum_of_rows(int(digest), int(clock)) for clock, digest in digests)
    rejected = []
    if weir.query("SELECT 1 FROM stream WHERE stream_name = :s", s=str(stream.rejected)):
        rejected = weir.read(stream.rejected, "stream").drop(columns=["_clock"]).values.tolist()
    schema = weir.frame(stream).drop("_clock")
    rows = [tuple(row) for row in schema.orderBy("_segment", "_offset").collect()]
    return list(map(tuple, files)), sums, schema.dtypes, repr(rows), repr(rejected)


@pytest.mark.parametrize("case", only(*CASES, of=[*CASES, "json shuffled", "parquet shuffled"]))
def test_both_engines_append_the_same(
    weir: Installation, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if case.endswith(" shuffled"):  # so that rows pass Spark on their way to the kernel
        monkeypatch.setattr(stage, "MANY_FILES", 0)
        monkeypatch.setattr(stage, "SMALL_FILE", 1 << 30)
        case = case.removesuffix(" shuffled")
    folder, create, options = Path(weir.input), dict[str, Any](), dict[str, Any]()
    create = {"on_bad_rows": "quarantine", "on_missing_key": "quarantine"}
    if case == "guessed":
        lines = [",".join(["k", *GUESSED])]
        lines += [",".join([key, *(GUESSED[n][1][i] for n in GUESSED)])
                  for i, key in enumerate(("a", "", "c"))]  # fmt: skip
        lines += ["x", "  ", "", 'a"",' + "," * (len(GUESSED) - 1)]
        (folder / "f.csv").write_text("\n".join(lines) + "\n")
    elif case == "declared":
        create["fields"] = DECLARED
        names = [one["name"] for one in DECLARED]
        cells = [(n, text) for n, texts in NOT_KEPT.items() for text in [*texts, ""]]
        rows = [";".join(text if n == name else "k1" if n == "k" else "" for n in names)
                for name, text in cells]  # fmt: skip
        (folder / "f.csv").write_text(";".join(names) + "\n" + "\n".join(rows) + "\n")
        options["separator"] = ";"
    elif case == "options":
        options = {"quote": "'", "escape": "\\", "comment": "#", "skip_lines": 1, "decimal": ",",
                   "separator": "|", "encoding": "windows-1252", "date_format": "dd.MM.yyyy",
                   "time_zone": "Europe/Berlin", "null_value": "NA"}  # fmt: skip
        text = "title\nk|p|d|at|t\n# c\nä|1,50|28.02.2026|2026-10-25 02:30:00|'it\\'s'\n"
        text += "b|NA|01.03.2026|2026-10-25 03:30:00|''\n"
        (folder / "f.csv").write_bytes(text.encode("cp1252"))
    elif case == "json":
        lines = ['{"k":"a","n":1,"s":{"x":[1,2.50]},"t":1.10,"d":12345678901234567890}',
                 '[{"k":"b","t":"x"},{"k":"c","s":{"y":null}}] {"k":"d","n":-0}', '{"n":7}', "x",
                 '{"k":"e","k":"e"}', '{"k":"f","at":"2026-01-01"}']  # fmt: skip
        (folder / "f.json").write_text("\n".join(lines))
    else:
        rows = pa.table({
            "k": ["a", None, "b"], "u": pa.array([1, None, 2**63], pa.uint64()),
            "s": pa.array([{"x": [1, 2]}, None, {"x": None}]), "e": pa.nulls(3),
            "at": pa.array([1, None, 2], pa.timestamp("ms", "Asia/Tokyo")),
            "d": pa.array(["p", "q", "p"]).dictionary_encode(),
            "w": pa.array([None, [], None], pa.list_(pa.null())),
            "ns": pa.array([1000, None, 1], pa.timestamp("ns", "UTC")),
            "id": pa.ExtensionArray.from_storage(
                pa.uuid(), pa.array([b"a" * 16, None, b"b" * 16], pa.binary(16))),
        })  # fmt: skip
        pq.write_table(rows, folder / "f.parquet")
    name = f"f.{case}" if case in ("json", "parquet") else "f.csv"
    spark, arrow = by_both(weir, name, name[2:], create, **options)
    assert arrow == spark


@pytest.mark.release
def test_a_file_at_which_pyarrow_ends_its_process_is_named(weir: Installation) -> None:
    path = Path(weir.input) / "x.parquet"
    pq.write_table(pa.table({"k": ["a"] * 200}), path, compression="none")
    data = path.read_bytes()
    path.write_bytes(data[:4] + bytes(100) + data[104:])

    def ends(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        os._exit(1)

    frame = weir.spark.range(1).mapInArrow(ends, "id long")
    with (
        raises("file_invalid 'x.parquet' completely"),
        naming_files(weir.input, [path.name], "parquet"),
    ):
        frame.collect()


@pytest.mark.release
def test_damage_that_a_task_finds_is_told_with_its_file_whatever_spark_is_told_to_ignore(
    weir: Installation,
) -> None:
    path = Path(weir.input) / "x.parquet"
    table = pa.table({"k": ["a"] * 200, "n": [*range(100)] * 2})
    pq.write_table(table, path, compression="none")
    pq.write_table(table, Path(weir.input) / "whole.parquet")
    column = pq.read_metadata(path).row_group(0).column(1)
    start = min(column.dictionary_page_offset, column.data_page_offset)
    end = start + column.total_compressed_size
    data = path.read_bytes()
    path.write_bytes(data[: end - 8] + b"\xff" * 8 + data[end:])
    stream = weir.create("s/values", segments=1)
    with setting(weir.spark, IGNORING), raises("file_invalid x.parquet completely"):
        weir.ingest(stream, ["whole.parquet", "x.parquet"])


@pytest.mark.release
def test_a_task_that_finds_a_file_unreadable_says_that_it_may_be_tried_again(
    weir: Installation,
) -> None:
    def fails(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise unreadable_now("x.parquet", OSError("the disk is away"))

    frame = weir.spark.range(1).mapInArrow(fails, "id long")
    with raises("file_unreadable 'x.parquet'") as failed, raising_own():
        frame.collect()
    assert isinstance(failed.value, UnreadableFile)
