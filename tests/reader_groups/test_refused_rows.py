# ruff: noqa: E501 - each is one statement
"""Whatever a table of a user raises ends in one sentence with the table and the row."""

import os
import tempfile
from pathlib import Path

import pytest

from tests.raises import raises
from tests.reader_groups.test_interference import MODES, stage, trigger
from tests.reader_groups.test_interference import names as names
from tests.reader_groups.test_interference import reader as reader
from tests.small_disk import mounted, resize
from tests.world.groups import Execute, Reader
from tests.world.streams import unique
from weir.errors import WeirError
from weir.local.embedded_postgres import EmbeddedPostgres

TABLE = "CREATE TABLE {t} (k text NOT NULL, said text, at bigint NOT NULL); CREATE UNIQUE INDEX ON {t} (k);"


def raising(state: str) -> str:
    return trigger(f"RAISE EXCEPTION 'so raised' USING ERRCODE = '{state}';")


# What the table is, how rows get in, and what the sentence has.
STATES = {
    "23502": (TABLE + "ALTER TABLE {t} ADD COLUMN more text NOT NULL DEFAULT 'x';"
              + trigger("NEW.more := NULL; RETURN NEW;"), "insert", "bad_rows {t} more b"),
    "23503": (TABLE + "CREATE TABLE {t}_of (k text PRIMARY KEY); ALTER TABLE {t} ADD FOREIGN KEY (k) REFERENCES {t}_of;",
              "insert", "bad_rows {t} foreign key Key k b"),
    "23505": (TABLE + "INSERT INTO {t} VALUES ('b', 'old', 1);", "insert", "bad_rows {t} Key k b"),
    "23505 of another constraint": (TABLE + "CREATE UNIQUE INDEX ON {t} (said);", "upsert", "bad_rows {t} Key said new"),
    "23514": (TABLE + "ALTER TABLE {t} ADD CHECK (at < 2);", "insert", "bad_rows {t} Failing row b new 2"),
    "23514 of a domain": ("CREATE DOMAIN {s}.short AS text CHECK (length(VALUE) < 2); CREATE TABLE {t} (k text, said {s}.short, at bigint);",
                          "insert", "bad_rows {t} short"),
    "23514 of a partition": ("CREATE TABLE {t} (k text NOT NULL, said text, at bigint NOT NULL) PARTITION BY LIST (k);"
                             "CREATE TABLE {t}_a PARTITION OF {t} FOR VALUES IN ('a');", "insert",
                             "table_changed {t} Partition key k b DEFAULT"),
    "23P01": (TABLE + "ALTER TABLE {t} ADD EXCLUDE USING btree (at WITH =);", "insert", "bad_rows {t} Key at 2"),
    "54000": (TABLE + "ALTER TABLE {t} ADD COLUMN more text;" + "CREATE INDEX ON {t} (more);"
              + trigger("NEW.more := (SELECT string_agg(md5(i::text), '') FROM generate_series(1, 500) i); RETURN NEW;"),
              "insert", "bad_rows {t} index"),
    "22012": (TABLE + trigger("NEW.at := 1 / 0; RETURN NEW;"), "insert", "bad_rows {t} division by zero function"),
    "22P02": (TABLE + trigger("PERFORM NEW.said::integer; RETURN NEW;"), "insert", "bad_rows {t} new function"),
    "22003": (TABLE + trigger("PERFORM 70000::smallint; RETURN NEW;"), "insert", "bad_rows {t} smallint"),
    "22007": (TABLE + trigger("PERFORM NEW.said::date; RETURN NEW;"), "insert", "bad_rows {t} new"),
    "22008": (TABLE + trigger("PERFORM '2026-02-30'::date; RETURN NEW;"), "insert", "bad_rows {t} 2026-02-30"),
    "22P05": (TABLE + trigger("PERFORM convert_to(NEW.said || chr(256), 'LATIN1'); RETURN NEW;"), "insert", "bad_rows {t} LATIN1 function"),
    "22P05 of jsonb": (TABLE + trigger("PERFORM ('\"' || chr(92) || 'u0000\"')::jsonb ->> 0; RETURN NEW;"), "insert", "bad_rows {t} u0000 function"),
    "22001": (TABLE + "ALTER TABLE {t} ADD COLUMN more varchar(2);" + trigger("NEW.more := 'long'; RETURN NEW;"), "insert", "bad_rows {t} varying(2)"),
    "P0001": (TABLE + trigger("RAISE EXCEPTION 'not %', NEW.k;"), "insert", "bad_rows {t} not b function"),
    "P0002": (TABLE + trigger("SELECT k INTO STRICT NEW.k FROM {t} WHERE false; RETURN NEW;"), "insert", "table_refused {t} no rows function"),
    "P0004": (TABLE + trigger("ASSERT false; RETURN NEW;"), "insert", "table_refused {t} assertion"),
    "42501": (TABLE + "CREATE TABLE {s}.other (n int);" + trigger("PERFORM FROM {s}.other; RETURN NEW;"), "insert", "right_missing {t} other"),
    "42501 of a policy": (TABLE + "ALTER TABLE {t} ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON {t} USING (k <> 'b');",
                          "insert", "right_missing {t} policy"),
    "42P01": (TABLE + trigger("PERFORM FROM {s}.nowhere; RETURN NEW;"), "insert", "table_changed {t} nowhere"),
    "42703": (TABLE + trigger("PERFORM NEW.k FROM {t} WHERE nothing = 1; RETURN NEW;"), "insert", "table_changed {t} nothing"),
    "42601": (TABLE + trigger("EXECUTE 'SELEC 1'; RETURN NEW;"), "insert", "table_refused {t} SELEC"),
    "0A000": (TABLE + "CREATE TABLE {t}_log (k text); CREATE RULE r AS ON INSERT TO {t} DO ALSO INSERT INTO {t}_log VALUES (NEW.k);", "upsert", "table_refused {t} ON CONFLICT"),
    "0A000 of a partition": ("CREATE TABLE {t} (k text NOT NULL, said text, at bigint NOT NULL) PARTITION BY LIST (k);"
                             "CREATE TABLE {t}_b PARTITION OF {t} FOR VALUES IN ('b'); CREATE TABLE {t}_c PARTITION OF {t} DEFAULT;"
                             + trigger("NEW.k := 'b'; RETURN NEW;"), "insert", "table_refused {t} moving row"),
    "55000": (TABLE + "CREATE SEQUENCE {s}.n; GRANT USAGE ON SEQUENCE {s}.n TO weir_publisher;"
              + trigger("PERFORM currval('{s}.n'); RETURN NEW;"), "insert", "table_refused {t} currval"),
    "2200H": (TABLE + "CREATE SEQUENCE {s}.n MAXVALUE 2; GRANT USAGE ON SEQUENCE {s}.n TO weir_publisher;"
              "ALTER TABLE {t} ADD COLUMN more bigint DEFAULT nextval('{s}.n');", "insert", "table_refused {t} sequence"),
    "53400": (TABLE + raising("53400"), "insert", "database_failed {t} so raised"),
    "53100": (TABLE + raising("53100"), "insert", "database_failed {t} disk"),
    "57014": (TABLE + raising("57014"), "insert", "database_failed {t} so raised"),
    "a state of one's own": (TABLE + raising("ZZ123"), "insert", "table_refused {t} so raised function ZZ123"),
    "21000": (TABLE + trigger("NEW.k := 'same'; RETURN NEW;"), "upsert", "table_refused {t}"),
}  # fmt: skip


@pytest.mark.parametrize("state", STATES)
def test_what_a_table_raises_ends_in_a_sentence(
    reader: Reader, names: dict[str, str], as_owner: Execute, state: str
) -> None:
    made, mode, says = STATES[state]
    as_owner(
        made.replace("{s}", names["s"]).replace("{t}", names["t"])
        + f"GRANT SELECT, INSERT, UPDATE, DELETE ON {names['t']} TO weir_publisher"
    )
    ready = stage(reader, names["t"], MODES[mode])
    with raises(says.replace("{t}", names["t"])) as refused:
        reader.commit(reader.must_open(), tables=[ready])
    sentence = refused.value.sentence
    assert "\n" not in sentence
    assert len(sentence) < 700
    assert reader.group.cut() == {"0.0": 0, "1.0": 0}


def test_a_long_row_is_cut_off(reader: Reader, names: dict[str, str], as_owner: Execute) -> None:
    as_owner(
        (TABLE + "ALTER TABLE {t} ADD CHECK (at < 2);").format(**names)
        + f"GRANT SELECT, INSERT ON {names['t']} TO weir_publisher"
    )
    ready = stage(reader, names["t"], MODES["insert"], [("k" * 5000, "s" * 5000, 2)])
    with pytest.raises(WeirError) as refused:
        reader.commit(reader.must_open(), tables=[ready])
    assert len(refused.value.sentence) < 700


def test_a_disk_that_is_full_is_named_with_the_table(
    reader: Reader, names: dict[str, str], as_owner: Execute, postgres_server: EmbeddedPostgres
) -> None:
    space, table = unique("small").replace("-", "_"), names["t"]
    server = (postgres_server.home / "data").stat()
    with tempfile.TemporaryDirectory() as above:
        Path(above).chmod(0o755)
        with mounted(Path(above, "disk"), "1m") as disk:
            os.chown(disk, server.st_uid, server.st_gid)
            postgres_server.psql(f"CREATE TABLESPACE {space} LOCATION '{disk}'")
            postgres_server.psql(f"GRANT CREATE ON TABLESPACE {space} TO weir_owner")
            try:
                as_owner(
                    f"CREATE TABLE {table} (k text NOT NULL, said text, at bigint NOT NULL) "
                    f"TABLESPACE {space}; GRANT SELECT, INSERT ON {table} TO weir_publisher"
                )
                many = [(str(n), "x" * 1000, n) for n in range(2_000)]
                ready = stage(reader, table, MODES["insert"], many)
                with raises(f"database_failed {table} free space on the disk"):
                    reader.commit(reader.must_open(), tables=[ready])
                assert reader.group.cut() == {"0.0": 0, "1.0": 0}
                resize(disk, "16m")
                reader.commit(reader.must_open(), tables=[ready])
                assert reader.group.cut() != {"0.0": 0, "1.0": 0}
            finally:
                as_owner(f"DROP TABLE IF EXISTS {table}")
                postgres_server.psql(f"DROP TABLESPACE {space}")
