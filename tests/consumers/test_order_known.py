"""Which upserts know the last row of each key, by the routing key of their stream."""

import pytest

from tests.raises import raises
from weir.consumers.outputs import Output
from weir.consumers.places import check_order_known
from weir.model.stream_configuration import Configuration


def kept(
    routing_key: str, key: str, order: str = "segment", missing: str = "fail", streams: int = 1
) -> list[str]:
    output = Output.parse(f"table:public.t mode=upsert key={key}", ())
    found = {f"s/in{i or ''}": Configuration(routing_key, missing) for i in range(streams)}
    return check_order_known(found, order, output)


def test_the_columns_of_a_routing_key_and_its_transforms_must_be_in_the_key() -> None:
    assert kept("k", "k,n") == ["k"]
    assert kept("concat(lower(K), '-', n)", "n,k,m") == ["n", "k"]
    assert kept("k", "n newest=at", "none", "spread", 2) == [], "which row is newer is said"


@pytest.mark.parametrize(
    ("routing_key", "key", "wrong"),
    [
        ("concat(lower(k), n)", "k", "output_invalid s/in concat(lower(k), n) newest=COLUMN"),
    ],
)
def test_an_upsert_by_less_than_the_routing_key_is_refused(
    routing_key: str, key: str, wrong: str
) -> None:
    with raises(wrong):
        kept(routing_key, key)


def test_an_upsert_of_events_in_no_common_order_is_refused() -> None:
    with raises("output_invalid no order"):
        kept("k", "k", order="none")
    with raises("output_invalid 2 streams s/in s/in1 newest"):
        kept("k", "k", streams=2)
    with raises("output_invalid s/in spreads newest"):
        kept("k", "k", missing="spread")
