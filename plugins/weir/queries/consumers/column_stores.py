"""What changes of columns mean for adjunct stores. Made by `make queries` from sql/queries/consumers/column_stores.sql."""

from sqlalchemy import Connection, text

FOLLOW = text(
    """UPDATE adjunct_definition SET key = CASE WHEN key = :was THEN :key ELSE key END,
    value = CASE WHEN definition = :definition THEN :value ELSE value END,
    delete_when = CASE WHEN definition = :definition THEN :delete_when ELSE delete_when END,
    outdated = CASE WHEN definition = :definition THEN coalesce(outdated, :outdated) ELSE outdated END
WHERE store_id = :store_id"""
)


def follow(
    connection: Connection,
    *,
    was: str,
    key: str,
    definition: int,
    value: str,
    delete_when: str,
    outdated: str | None,
    store_id: int,
) -> None:
    """Change a definition. A key that is the same column makes no version of another definition one of other keys."""
    result = connection.execute(
        FOLLOW,
        {
            "was": was,
            "key": key,
            "definition": definition,
            "value": value,
            "delete_when": delete_when,
            "outdated": outdated,
            "store_id": store_id,
        },
    )
    result.close()


STORES_OF = text("""SELECT name FROM adjunct_store WHERE stream_id = :stream_id ORDER BY name""")


def stores_of(connection: Connection, *, stream_id: int) -> list[str]:
    """Return the adjunct stores of a stream."""
    result = connection.execute(STORES_OF, {"stream_id": stream_id})
    return [row[0] for row in result]
