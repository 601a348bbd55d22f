"""Somebody may publish all tables of the database: deletes and updates must go on."""

from tests.world.streams import rows
from weir.database.connection import Database


def test_every_table_has_an_identity_under_which_a_publication_knows_its_rows(
    database: Database,
) -> None:
    without = rows(
        database,
        """SELECT c.oid::regclass::text FROM pg_class c
        WHERE c.relkind IN ('r', 'p') AND c.relpersistence = 'p'
          AND c.relnamespace::regnamespace::text IN ('weir', 'weir_internal', 'weir_staging')
          AND c.relreplident <> 'f'
          AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid
                          AND (i.indisprimary AND c.relreplident = 'd' OR i.indisreplident))""",
    )
    assert without == []
