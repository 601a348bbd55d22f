"""A file that declares a shop, and what applies it."""

from collections.abc import Callable
from typing import Any

import yaml

from tests.world.streams import rows, unique
from weir.annex.declarations.apply import apply, compare
from weir.annex.declarations.differences import Difference
from weir.annex.declarations.reading import read_text
from weir.database.connection import Database
from weir.operations.asked import Allowed
from weir.settings import Settings

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
    outputs: ["stream:shop/late", "parquet:late"]
    parameters: {threshold: 10}
"""


SETTINGS = Settings(function_packages=("shop", "a"))


def run(
    database: Database,
    text: str,
    *,
    loss: bool = False,
    truncated: bool = False,
    named: bool = False,
    say: Callable[[str], object] = lambda line: None,
) -> list[Difference]:
    """Apply a file under a request of its own."""
    allowed = Allowed(loss, truncated, named)
    return apply(database, SETTINGS, read_text(text), allowed, request_id=unique("run"), say=say)


def compared(database: Database, text: str, *, truncated: bool = False) -> list[Difference]:
    """What applying a file would change."""
    return compare(database, SETTINGS, read_text(text), truncated)


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
