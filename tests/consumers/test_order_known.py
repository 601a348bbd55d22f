"""Which upserts know the last row of each key, by the routing key of their stream."""

import pytest

from tests.raises import raises
from weir.consumers.outputs import Output
from weir.consumers.places import check_order_known
from weir.model.stream_configuration import Configuration


def kept(routing_key: str, key: str) -> list[str]:
    output = Output.parse(f"table:public.t mode=upsert key={key}", ())
    return check_order_known({"s/in": Configuration(routing_key, "fail")}, "segment", output)


def test_the_columns_of_a_routing_key_and_its_transforms_must_be_in_the_key() -> None:
    assert kept("k", "k,n") == ["k"]
    assert kept("concat(lower(K), '-', n)", "n,k,m") == ["n", "k"]


@pytest.mark.parametrize(
    ("routing_key", "key", "wrong"),
    [
        ("concat(lower(k), n)", "k", "order_unknown s/in concat(lower(k), n) newest=COLUMN"),
    ],
)
def test_an_upsert_by_less_than_the_routing_key_is_refused(
    routing_key: str, key: str, wrong: str
) -> None:
    with raises(wrong):
        kept(routing_key, key)
