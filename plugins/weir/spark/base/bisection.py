"""Find places in arrays in order, without a join."""

from collections.abc import Callable, Iterable

from pyspark.sql import DataFrame


def constant_array(values: Iterable[int]) -> str:
    """Return SQL for a constant array of longs as one literal, whatever its length. Spark folds
    it."""
    return f"cast(split('{','.join(map(str, values))}', ',') AS array<bigint>)"


def bisected(
    frame: DataFrame, name: str, size: int, reached: Callable[[str], str], first: str = "0"
) -> DataFrame:
    """Return rows with a column `name`: the last place that a row has reached, of so many (a power
    of 2) from `first` on, which each has reached. `reached`: SQL for whether it has another one.

    Each step is a projection of its own, all of which Spark compiles into one loop.
    """
    frame, step = frame.selectExpr("*", f"{first} AS {name}"), size // 2
    while step:
        further = f"{name} + if({reached(f'{name} + {step}')}, {step}, 0) AS {name}"
        frame, step = frame.selectExpr(f"* EXCEPT ({name})", further), step // 2
    return frame
