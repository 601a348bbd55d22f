# ruff: noqa: E501 - each is one statement
"""What a table did with the rows of a batch is what it was told, or nothing is committed."""

import io

import pytest

from tests.raises import raises
from tests.world.groups import Execute, Group, Reader
from tests.world.streams import Lane, rows, unique
from weir.database.connection import copy_in
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.reader_groups.outputs.publication import Publication
from weir.reader_groups.outputs.tables import StagedTable, make_staging, read_table

MODES = {
    "insert": Publication(),
    "upsert": Publication("upsert", ("k",)),
    "newest": Publication("upsert", ("k",), ("at",)),
    "replace": Publication("replace"),
    "replace by key": Publication("replace", ("k",)),
}
COLUMNS = "(k text NOT NULL, said text, at bigint NOT NULL, seen timestamptz)"
KINDS = {
    "plain": "CREATE TABLE {t} " + COLUMNS + "; CREATE UNIQUE INDEX ON {t} (k);",
    "partitioned": "CREATE TABLE {t} " + COLUMNS + " PARTITION BY LIST (k); CREATE TABLE {t}_a PARTITION OF {t} "
    "FOR VALUES IN ('a', 'b'); CREATE TABLE {t}_c PARTITION OF {t} DEFAULT; CREATE UNIQUE INDEX ON {t} (k);",
    "inherited": "CREATE TABLE {t} " + COLUMNS + "; CREATE UNIQUE INDEX ON {t} (k); CREATE TABLE {t}_a () INHERITS ({t});",
}  # fmt: skip
OLD = [("a", "old", 1), ("z", "old", 1)]
GIVEN = [("b", "new", 2), ("c", "new", 2), ("d", "new", 2)]
TRIGGER = (
    "CREATE FUNCTION {s}.f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN %s END $$;"
    "CREATE TRIGGER t %s ON {t} FOR EACH %s EXECUTE FUNCTION {s}.f();"
)


def trigger(body: str, timing: str = "BEFORE INSERT", each: str = "ROW") -> str:
    return TRIGGER % (body, timing, each)


ONCE = "IF pg_trigger_depth() < 2 THEN %s END IF; RETURN NULL;"

# What makes a table do something else, by modes in which it does.
ANY = tuple(MODES)
INSERTS = ("insert", "replace", "replace by key")
UPSERTS = ("upsert", "newest")
REPLACES = ("replace", "replace by key")
MEANS = {
    "a trigger that drops all rows": (trigger("RETURN NULL;"), ANY),
    "a trigger that drops a row": (trigger("IF NEW.k = 'b' THEN RETURN NULL; END IF; RETURN NEW;"), ANY),
    "a trigger that changes a value": (trigger("NEW.said := upper(NEW.said); RETURN NEW;"), ANY),
    "a trigger that changes the key": (trigger("NEW.k := CASE NEW.k WHEN 'd' THEN 'e' ELSE NEW.k END; RETURN NEW;"), ANY),
    "a trigger that makes null of a value": (trigger("NEW.said := NULL; RETURN NEW;"), ANY),
    "a trigger that makes all rows newer": (trigger("NEW.at := 9; RETURN NEW;"), ANY),
    "a trigger that changes a row afterwards":
        (trigger("UPDATE {t} SET said = 'after' WHERE k = NEW.k; RETURN NULL;", "AFTER INSERT"), ANY),
    "a trigger that deletes a row afterwards":
        (trigger("DELETE FROM {t} WHERE k = 'b'; RETURN NULL;", "AFTER INSERT"), ANY),
    "a trigger that deletes what was there":
        (trigger("DELETE FROM {t} WHERE said = 'old'; RETURN NULL;", "AFTER INSERT", "STATEMENT"),
         ("insert", "upsert", "newest", "replace by key")),
    "a trigger that changes what was there":
        (trigger("UPDATE {t} SET said = 'older' WHERE said = 'old'; RETURN NULL;", "AFTER INSERT", "STATEMENT"),
         ("insert", "upsert", "newest", "replace by key")),
    "a trigger that adds rows":
        (trigger(ONCE % "INSERT INTO {t} VALUES ('more', 'more', 1);", "AFTER INSERT", "STATEMENT"), ANY),
    "a trigger that empties the table":
        (trigger("DELETE FROM {t}; RETURN NULL;", "AFTER INSERT", "STATEMENT"), ANY),
    "a trigger that adds others instead": (
        trigger(
            ONCE % "DELETE FROM {t} WHERE k = 'b'; INSERT INTO {t} VALUES ('e', 'new', 2);",
            "AFTER INSERT", "STATEMENT",
        ),
        ANY,
    ),
    "a deferred trigger":
        ("CREATE FUNCTION {s}.f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE {t} SET said = 'late' "
         "WHERE k = NEW.k; RETURN NULL; END $$; CREATE CONSTRAINT TRIGGER t AFTER INSERT ON {t} "
         "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION {s}.f();", ANY),
    "a trigger that keeps rows that are replaced": (trigger("RETURN NULL;", "BEFORE DELETE"), ("replace",)),
    "a rule that does nothing": ("CREATE RULE r AS ON INSERT TO {t} DO INSTEAD NOTHING;", INSERTS),
    "a rule that drops a row":
        ("CREATE RULE r AS ON INSERT TO {t} WHERE NEW.k = 'b' DO INSTEAD NOTHING;", INSERTS),
    "a rule that puts rows elsewhere":
        ("CREATE TABLE {t}_else (LIKE {t}); GRANT INSERT ON {t}_else TO weir_publisher;"
         "CREATE RULE r AS ON INSERT TO {t} DO INSTEAD INSERT INTO {t}_else VALUES (NEW.*);", INSERTS),
    "a rule that also changes rows":
        ("CREATE RULE r AS ON INSERT TO {t} DO ALSO UPDATE {t} SET said = 'ruled' WHERE k = NEW.k;", INSERTS),
    "a rule that keeps rows that are replaced": ("CREATE RULE r AS ON DELETE TO {t} DO INSTEAD NOTHING;", ("replace",)),
    "a rule and a trigger that changes a value":
        ("CREATE TABLE {t}_log (k text); GRANT INSERT ON {t}_log TO weir_publisher;"
         "CREATE RULE r AS ON INSERT TO {t} DO ALSO INSERT INTO {t}_log VALUES (NEW.k);"
         + trigger("NEW.said := upper(NEW.said); RETURN NEW;"), INSERTS),
    "a policy that hides rows that are replaced":
        ("ALTER TABLE {t} ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON {t} USING (said <> 'old') "
         "WITH CHECK (true);", ("replace",)),
    "a policy that lets nobody delete":
        ("ALTER TABLE {t} ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON {t} FOR SELECT USING (true);"
         "CREATE POLICY q ON {t} FOR INSERT WITH CHECK (true);", ("replace",)),
    "a restrictive policy":
        ("ALTER TABLE {t} ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON {t} USING (true);"
         "CREATE POLICY q ON {t} AS RESTRICTIVE FOR DELETE USING (k <> 'a');", ("replace",)),
}  # fmt: skip
# What a table may have besides.
HARMLESS = {
    "a trigger that fills another column": trigger("NEW.seen := now(); RETURN NEW;"),
    "a trigger that writes elsewhere":
        "CREATE TABLE {t}_log (k text); GRANT INSERT ON {t}_log TO weir_publisher;"
        + trigger("INSERT INTO {t}_log VALUES (NEW.k); RETURN NULL;", "AFTER INSERT"),
    "a trigger that is disabled": trigger("RETURN NULL;") + "ALTER TABLE {t} DISABLE TRIGGER t;",
    "a policy that lets all pass":
        "ALTER TABLE {t} ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON {t} TO weir_publisher USING (true);",
    "a default": "ALTER TABLE {t} ALTER COLUMN seen SET DEFAULT now();",
    "a generated column": "ALTER TABLE {t} ADD COLUMN twice bigint GENERATED ALWAYS AS (2 * at) STORED;",
}  # fmt: skip


@pytest.fixture
def reader(lane: Lane) -> Reader:
    lane.append({"0.0": [5], "1.0": [5]})
    return Group.made(lane).reader()


def stage(
    reader: Reader, table: str, how: Publication, given: list[tuple[str, str, int]] | None = None
) -> StagedTable:
    database = reader.group.database
    batch = reader.must_open()
    known = database.transaction(lambda c: read_table(c, table, how))
    columns = [c for c in known if c.name in ("k", "said", "at")]
    staging, copy = make_staging(database, batch, 0, columns, how.ordered)
    lines = [[*row, 0, i] if how.ordered else row for i, row in enumerate(given or GIVEN)]
    csv = "".join(",".join(map(str, line)) + "\n" for line in lines)
    piece = database.transaction(lambda c: copy_in(c, copy, io.BytesIO(csv.encode())))
    return StagedTable(table, staging, (piece,), len(lines), how)


@pytest.fixture
def names(as_owner: Execute) -> dict[str, str]:
    """Make a schema; return what stands for it and its table in statements."""
    schema = unique("shop").replace("-", "_")
    as_owner(
        f"CREATE SCHEMA {schema}", f"GRANT USAGE ON SCHEMA {schema} TO weir_jobs, weir_publisher"
    )
    return {"s": schema, "t": f"{schema}.told"}


def fill(execute: Execute, names: dict[str, str], kind: str, more: str) -> None:
    execute(
        KINDS[kind].format(**names)
        + "GRANT SELECT, INSERT, UPDATE, DELETE ON {t} TO weir_publisher; GRANT SELECT ON {t} TO weir_jobs;"
        "INSERT INTO {t} VALUES ('a', 'old', 1), ('z', 'old', 1);".format(**names)
        + more.replace("{s}", names["s"]).replace("{t}", names["t"])
    )


def there(execute: Execute, group: Group, table: str) -> list[tuple[str, str, int]]:
    execute(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")  # which hides rows from the tests
    return sorted(tuple(r) for r in rows(group.database, f"SELECT k, said, at FROM {table}"))


CASES = [("plain", mode, means) for means, (_, modes) in MEANS.items() for mode in modes] + [
    (kind, modes[(i + j) % len(modes)], means)  # of the others one mode for each, in turn
    for i, (means, (_, modes)) in enumerate(MEANS.items())
    for j, kind in enumerate(("partitioned", "inherited"))
]


@pytest.mark.parametrize(("kind", "mode", "means"), CASES)
def test_a_table_that_does_something_else_with_the_rows_gets_none(
    reader: Reader, names: dict[str, str], as_owner: Execute, kind: str, mode: str, means: str
) -> None:
    fill(as_owner, names, kind, MEANS[means][0])
    ready = stage(reader, names["t"], MODES[mode])
    with raises(f"table_refused {names['t']} COMMENT ON TABLE"):
        reader.commit(reader.must_open(), tables=[ready])
    assert there(as_owner, reader.group, names["t"]) == OLD
    assert reader.group.cut() == {"0.0": 0, "1.0": 0}


@pytest.mark.parametrize("means", HARMLESS)
@pytest.mark.parametrize(
    ("kind", "mode"),
    [*(("plain", mode) for mode in MODES), ("partitioned", "upsert"), ("inherited", "insert")],
)
def test_a_table_that_does_what_it_is_told_gets_the_rows(
    reader: Reader, names: dict[str, str], as_owner: Execute, kind: str, mode: str, means: str
) -> None:
    fill(as_owner, names, kind, HARMLESS[means])
    ready = stage(reader, names["t"], MODES[mode])
    reader.commit(reader.must_open(), tables=[ready])
    assert there(as_owner, reader.group, names["t"]) == sorted(
        GIVEN + ([] if mode == "replace" else OLD)
    )
    assert ready.told == []


@pytest.mark.parametrize("kind", ["plain", "partitioned"])
@pytest.mark.parametrize(("mode", "means"), [
    ("insert", "a trigger that drops a row"), ("upsert", "a trigger that changes a value"),
    ("replace", "a policy that hides rows that are replaced"), ("insert", "a rule that drops a row"),
    ("insert", "a deferred trigger"),
])  # fmt: skip
def test_what_a_tables_owner_wants_it_to_do_is_told(
    reader: Reader, names: dict[str, str], as_owner: Execute, kind: str, mode: str, means: str
) -> None:
    fill(as_owner, names, kind, MEANS[means][0])
    as_owner(f"COMMENT ON TABLE {names['t']} IS 'What was read. weir: may change rows'")
    ready = stage(reader, names["t"], MODES[mode])
    reader.commit(reader.must_open(), tables=[ready])
    if "deferred" not in means:
        assert names["t"] in ready.told[0]
    assert there(as_owner, reader.group, names["t"]) != OLD
    assert reader.group.cut() == {"0.0": 5, "1.0": 5}


def test_a_trigger_of_a_partition_counts(
    reader: Reader, names: dict[str, str], as_owner: Execute
) -> None:
    fill(as_owner, names, "partitioned", trigger("RETURN NULL;").replace("ON {t}", "ON {t}_a"))
    ready = stage(reader, names["t"], MODES["insert"])
    with raises(f"table_refused {names['t']} 2 came in"):
        reader.commit(reader.must_open(), tables=[ready])


def test_a_foreign_key_to_itself_that_deletes_others_counts(
    reader: Reader, names: dict[str, str], as_owner: Execute
) -> None:
    fill(as_owner, names, "plain", "ALTER TABLE {t} ADD COLUMN of text REFERENCES {t} (k) ON DELETE CASCADE;"
         "INSERT INTO {t} VALUES ('b', 'old', 1); UPDATE {t} SET of = 'b' WHERE k = 'a';")  # fmt: skip
    ready = stage(reader, names["t"], MODES["replace by key"])
    with raises(f"table_refused {names['t']} deleted 2 change"):
        reader.commit(reader.must_open(), tables=[ready])


def test_an_upsert_of_older_rows_changes_nothing_and_is_right(
    reader: Reader, names: dict[str, str], as_owner: Execute
) -> None:
    fill(as_owner, names, "plain", HARMLESS["a trigger that fills another column"]
         + "INSERT INTO {t} VALUES ('b', 'newer', 3), ('c', 'same', 2);")  # fmt: skip
    reader.commit(reader.must_open(), tables=[stage(reader, names["t"], MODES["newest"])])
    assert there(as_owner, reader.group, names["t"]) == sorted(
        [*OLD, ("b", "newer", 3), ("c", "new", 2), ("d", "new", 2)]
    )


def test_another_login_than_the_owner_cannot_declare_it(
    reader: Reader, names: dict[str, str], as_owner: Execute, postgres_server: EmbeddedPostgres
) -> None:
    fill(as_owner, names, "plain", trigger("RETURN NULL;"))
    with pytest.raises(Exception, match="must be owner"):
        rows(reader.group.database, f"COMMENT ON TABLE {names['t']} IS 'weir: may change rows'")
