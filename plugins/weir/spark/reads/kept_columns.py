"""Find out whether a column of a result still is a column of the events that it was made of."""

from pyspark.sql import DataFrame

from weir.spark.base.java import Java
from weir.spark.reads.native import READING_TASK


def is_kept(name: str, result: DataFrame, events: DataFrame) -> bool:
    """Return whether each row of a result has in a column what the event that it comes from has in
    the column of the same name.

    Spark gives each column a number, which a selection, filter, sort, join or grouping keeps, and
    anything that computes another value does not. What Spark cannot see into, such as a Python
    function, counts as such, too, and so does a union, whose parts follow one another.
    """
    mine, theirs = (_column(name, frame) for frame in (result, events))
    return (
        mine is not None
        and theirs is not None
        and _comes_from(_plan(result), mine, theirs.exprId())
    )


def _comes_from(plan: Java, column: Java, wanted: Java) -> bool:
    # A union has the numbers of its first part, whatever the others are. That of a read is one.
    if str(plan.nodeName()) == "Union" and plan.schema().getFieldIndex(READING_TASK).isEmpty():
        return False
    children = plan.children()
    for child in map(children.apply, range(int(children.size()))):
        if child.outputSet().contains(column):
            return _comes_from(child, column, wanted)
    return bool(column.exprId().equals(wanted))


def _column(name: str, frame: DataFrame) -> Java | None:
    """Return the column of a frame, or None. Names are compared as Spark does."""
    names = [column.lower() for column in frame.columns]
    return _plan(frame).output().apply(names.index(name.lower())) if name.lower() in names else None


def _plan(frame: DataFrame) -> Java:
    plan: Java = frame._jdf.queryExecution().analyzed()
    return plan
