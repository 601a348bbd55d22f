"""A file that declares a shop, and what applies it."""

from typing import Any

import yaml

from tests.world.streams import rows
from weir.annex.declarations.apply import Checks, apply
from weir.annex.declarations.differences import Difference
from weir.annex.declarations.reading import read_text
from weir.consumers.column_users import allowing
from weir.database.connection import Database
from weir.model.schema import Field

SHOP = """
streams:
  shop/orders:
    routing_key: customer
    segments: 2
    schema: customer STRING, amount BIGINT
    retention: consumed
    retain_max_age: 30 d
    tags: [money]
  shop/late: {routing_key: customer}
adjunct_stores:
  shop/newest:
    stream: shop/orders
    value: amount
    history: 30 d
    time_out: 7 d
reader_groups:
  late:
    streams: [shop/orders]
    time_out: 7 d
    pins: [shop/orders 0.25..0.5 big]
consumers:
  late:
    function: shop.orders:late
    outputs: ["stream:shop/late", "table:shop.late mode=upsert key=customer"]
    parameters: {threshold: 10}
"""


def columns(text: str, key: str | None) -> list[Field] | None:
    """What Spark makes of columns of two words."""
    if not text:
        return None
    kinds = {"STRING": "string", "BIGINT": "long", "INT": "integer", "DOUBLE": "double"}
    named = [one.split() for one in text.split(",")]
    return [{"name": n, "type": kinds[t], "nullable": True, "metadata": {}} for n, t in named]


CHECKS = Checks(
    columns, lambda *event_time: None, lambda *definition: None,
    lambda *consumer: None, lambda allow_named: allowing(allow_named, ()),
)  # fmt: skip


def run(database: Database, text: str, **options: Any) -> list[Difference]:
    """Apply a file under a request of its own."""
    run.count = getattr(run, "count", 0) + 1  # type: ignore[attr-defined]
    return apply(
        database, read_text(text), checks=CHECKS,
        request_id=f"run {run.count}", say=lambda line: None, **options,  # type: ignore[attr-defined]
    )  # fmt: skip


def everything(database: Database) -> list[Any]:
    """All rows that an apply may write."""
    tables = ("stream", "stream_schema", "epoch", "reader_group", "reader_group_stream",
              "reader_group_segment", "reader_group_pin", "adjunct_store",
              "adjunct_definition", "request")  # fmt: skip
    return [
        [tuple(map(str, row)) for row in rows(database, f"SELECT * FROM {table} ORDER BY 1, 2")]
        for table in tables
    ]


def edited(*path: str, value: Any) -> str:
    """The file with one entry changed."""
    found = yaml.safe_load(SHOP)
    one = found
    for name in path[:-1]:
        one = one.setdefault(name, {})
    one[path[-1]] = value
    written: str = yaml.safe_dump(found)
    return written
