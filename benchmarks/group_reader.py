"""What it costs to read a group with pyarrow into a table, beside the same by hand."""

import io
import time
from collections.abc import Callable
from contextlib import closing

import psycopg2
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

import weir
from benchmarks.figure import Figure
from benchmarks.setting import Setting
from weir.controller.read_plan import plan_of_stream
from weir.model.names import stream_name

ROWS = 1000
COLUMNS = "id bigint, customer text, amount double precision"


def reader(setting: Setting) -> Figure:
    """Return the figure of the batches of a group, each read and committed to a table."""
    count = 200 if setting.full else 50
    setting.durable(True)
    setting.server.psql(
        "CREATE SCHEMA IF NOT EXISTS bench; GRANT USAGE ON SCHEMA bench TO PUBLIC", "weir"
    )
    name = f"bench/read-{setting.number()}"
    store = setting.at_end.enter_context(weir.open(settings=setting.settings))
    store.create_stream(name, "customer", segments=1)
    for i in range(count):
        ids = range(i * ROWS, (i + 1) * ROWS)
        store.append(
            name,
            pa.table({"id": ids, "customer": [f"c{n % 97}" for n in ids],
                      "amount": [n / 7 for n in ids]}),
        )  # fmt: skip
    plan = setting.database.snapshot(lambda c: plan_of_stream(c, stream_name(name)))
    files = [f"{setting.settings.warehouse}/{one.path}" for one in plan[1]]

    def table() -> str:
        made = f"bench.t{setting.number()}"
        setting.server.psql(
            f"CREATE TABLE {made} ({COLUMNS}); GRANT ALL ON {made} TO PUBLIC", "weir"
        )
        return made

    def ours() -> float:
        made, group = table(), f"g{setting.number()}"
        store.create_reader_group(group, [name])
        start = time.perf_counter()
        done = 0
        for batch in store.reader(group, batch_events=ROWS):
            batch.commit({f"table:{made}": batch.events})
            done += 1
        seconds = time.perf_counter() - start
        if done != count:
            raise RuntimeError(f"{done} batches in place of {count}")
        return seconds / count

    def by_hand(copy: Callable[[str], None]) -> float:
        made = table()
        start = time.perf_counter()
        copy(made)
        return (time.perf_counter() - start) / count

    def copied(made: str) -> None:
        """Copy file after file, each with its position in one transaction."""
        options = pyarrow.csv.WriteOptions(include_header=False)
        with closing(psycopg2.connect(setting.dsn)) as connection:
            for position, file in enumerate(files):
                rows = pq.read_table(file, columns=["id", "customer", "amount"])
                texts = io.BytesIO()
                pyarrow.csv.write_csv(rows, texts, options)
                texts.seek(0)
                with connection, connection.cursor() as cursor:
                    cursor.copy_expert(f"COPY {made} FROM STDIN (FORMAT csv)", texts)
                    cursor.execute("UPDATE bench.position SET number = %s", (position,))

    setting.server.psql(
        "CREATE TABLE IF NOT EXISTS bench.position (number bigint); "
        "INSERT INTO bench.position VALUES (0); GRANT ALL ON bench.position TO PUBLIC", "weir",
    )  # fmt: skip
    return Figure(
        "people/reader_arrow",
        f"a batch of {ROWS:,} events of a group, read with pyarrow and committed to a table, the "
        f"mean of {count}, beside a loop that copies file after file and its position",
        ours, lambda: by_hand(copied), limit=8, goal=2.5, unit="s per batch",
        notes={"batches": count},
    )  # fmt: skip


FIGURES = {"people/reader_arrow": reader}
