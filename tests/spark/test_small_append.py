"""What one more small append in a session that runs asks of Spark and of Postgres."""

from tests.spark.installation import Installation
from tests.spark.test_wide_rows import counted
from tests.watching import count_statements

QUESTIONS = 400  # to the JVM


def test_a_small_append_is_one_job_three_statements_and_few_questions(weir: Installation) -> None:
    stream = weir.create()
    frame = weir.spark.range(0, 1000, 1, 2).selectExpr("concat('k', id % 9) AS k", "id AS n")
    weir.append(stream, frame)  # which makes what later ones have
    jobs = weir.spark.sparkContext.statusTracker()
    before = set(jobs.getJobIdsForGroup())
    statements = count_statements(weir.database)
    with counted(weir) as made:
        weir.append(stream, frame)
    assert len(set(jobs.getJobIdsForGroup()) - before) == 1
    assert len(statements) == 3, statements
    assert len(made) < QUESTIONS
