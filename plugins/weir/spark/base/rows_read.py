"""How many rows the queries of a JVM have read that it runs now."""

from contextlib import suppress

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext

from weir.spark.base.java import Java, java_class

# The setting by which a server tells a session of Spark Connect the operation, and its rows.
TOLD = "spark.weir.rows"
_ROWS = "number of output rows"  # the name of this metric in each step of Spark's plan
_QUERY = "org.apache.spark.sql.execution.ui.SQLExecutionUIData"
SERVICE = "org.apache.spark.sql.connect.service.SparkConnectService$.MODULE$"


def rows_read(context: SparkContext, spark: Java, tag: str = "") -> int:
    """Return how many rows the running queries have read, or those whose jobs have a tag: for each,
    the count of the step with the most.

    The counts of a stage include only finished tasks; those of a query include all tasks.
    """
    known, store = context._jsc.sc().statusStore(), spark.sharedState().statusStore()
    kind = java_class(context._jvm, "java.lang.Class").forName(_QUERY)
    queries = known.store().view(kind).index("completionTime").iterator()
    rows = 0
    while queries.hasNext():
        query = queries.next()
        if query.completionTime().isDefined():
            break  # those that run come first, and Spark keeps a thousand that have ended
        jobs = query.jobs().keys().toSeq()
        if tag and not (int(jobs.length()) and known.job(jobs.apply(0)).jobTags().contains(tag)):
            continue
        counts = store.executionMetrics(query.executionId())
        steps = query.metrics()
        seen = [0]
        for k in range(int(steps.length())):
            count = counts.get(steps.apply(k).accumulatorId())
            if str(steps.apply(k).name()) == _ROWS and count.isDefined():
                seen.append(int(str(count.get()).replace(",", "")))
        rows += max(seen)
    return rows


def tell(context: SparkContext) -> None:
    """Tell the sessions of this server how many rows their operations have read that run now, as
    far as Spark says it: nobody's work depends on that."""
    with suppress(Exception):
        running = java_class(context._jvm, SERVICE).executionManager().listExecuteHolders()
        for i in range(int(running.length())):
            one = running.apply(i)
            with suppress(Py4JJavaError):  # it has ended meanwhile
                rows = rows_read(context, one.session(), str(one.jobTag()))
                one.session().conf().set(TOLD, f"{one.operationId()} {rows}")
