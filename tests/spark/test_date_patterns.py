"""A pattern of dates that Spark refuses is told with the expression that has it."""

from tests.raises import raises
from tests.spark.adjunct_world import Way, World
from tests.spark.installation import Installation
from weir.model.adjunct_configuration import AdjunctDefinition


def test_a_pattern_of_dates_that_spark_refuses_is_named_with_its_expression(
    weir: Installation,
) -> None:
    for number, (settings, names) in enumerate([
        ({"key": "date_format(n, '#,##0.00')"}, "routing key #,##0.00"),
        ({"key": "to_timestamp(k, 'qqq')"}, "routing key qqq"),
        ({"event_time": "to_timestamp(k, 'YYYY-MM-dd')"}, "event time YYYY-MM-dd"),
    ]):  # fmt: skip
        stream = weir.create(f"s/{number}", segments=1, **settings)
        with raises(f"expression_not_computable {names}"):
            weir.append(stream, [("a", 1)])


def test_a_pattern_of_dates_in_a_definition_is_named_with_the_store(weir: Installation) -> None:
    world = World.made(weir, segments=1)
    wrong = AdjunctDefinition(value="to_date(op, 'YYYY')")
    store = world.store(Way(wrong, lambda e: e.k, lambda e: None))
    world.append([("a", 1, "x")])
    with raises("expression_not_computable value adjunct store YYYY"):
        store.build()
