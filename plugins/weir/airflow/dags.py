"""What the DAG files in `dags` are made of: the DAG of a job, by a schedule or with a form for
people. And all of these DAGs, for the DAG file of an Airflow that has Weir from the wheel."""

import runpy
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from airflow.sdk import DAG, Asset, get_parsing_context

from weir.airflow.forms import IRREVERSIBLE, form, manual, periodic
from weir.airflow.operators import WeirJobOperator
from weir.airflow.readers import form_per_reader
from weir.airflow.suggestions import suggested_names
from weir.airflow.work import work_asset
from weir.operations.jobs import ACTIONS
from weir.source_tree import beside

CHECK = "weir_check.py"  # which makes no DAG


def scheduled(schedule: str, *, always: bool = False) -> Callable[[Callable[[], None]], DAG | None]:
    """Return a decorator like Airflow's `@dag`, for a function `weir_JOB` that makes the tasks of a
    DAG: with the page and the form of that job, and the settings of what runs by itself. When the
    schedule comes round, it runs if there is something to do, or `always`.

    It makes no DAG of a job that can't be imported, or where Airflow runs a task of another DAG.
    """

    def made(function: Callable[[], None]) -> DAG | None:
        job = function.__name__.removeprefix("weir_")
        return _dag(job, function, schedule if always else [work_asset(job, schedule)])

    return made


def by_hand(job: str) -> dict[str, DAG]:
    """Return the DAG of a job that people trigger, by its id: its page, its form, and one task that
    submits the job. The task of `process` is mapped, one for each reader. Nothing where `scheduled`
    makes none."""

    def tasks() -> None:
        if job == "process":
            code = ACTIONS[job].code  # a task that is mapped is made of what is given here
            mapped = WeirJobOperator.partial(task_id=job, job=job, doc_md=code)
            mapped.expand(arguments=form_per_reader())
        else:
            WeirJobOperator(task_id=job, job=job)

    dag = _dag(job, tasks, None)
    return {} if dag is None else {dag.dag_id: dag}


def weir_dags() -> dict[str, DAG]:
    """Return all DAGs of Weir's own files, by their ids, for `globals().update(weir_dags())` in a
    DAG file of yours. Where Airflow runs a task, the DAG of that task alone."""
    found: dict[str, DAG] = {}
    _names.cache_clear()
    for file in sorted(beside("dags").glob("weir_*.py")):
        made = [] if file.name == CHECK else runpy.run_path(str(file)).values()
        found |= {one.dag_id: one for one in made if isinstance(one, DAG) and _wanted(one.dag_id)}
    return found


def check_jobs() -> None:
    """Raise ImportError if a job can't be imported: a DAG file that calls it shows that among
    Airflow's import errors, while the DAGs of all other jobs run."""
    if broken := ACTIONS.broken():
        raise ImportError("; ".join(broken.values()))


def _dag(job: str, tasks: Callable[[], None], schedule: str | list[Asset] | None) -> DAG | None:
    if not _wanted(f"weir_{job}") or job not in ACTIONS:  # a task loads no other job than its own
        return None
    action = ACTIONS[job]
    tags = [action.subject, *([IRREVERSIBLE] if action.irreversible else [])]
    settings = manual(*tags) if schedule is None else periodic(schedule, *tags)
    # Where a task runs, nobody fills in a form.
    names = {} if get_parsing_context().dag_id else _names()
    with DAG(f"weir_{job}", doc_md=action.page, params=form(job, names), **settings) as dag:
        tasks()
    return dag


def _wanted(dag_id: str) -> bool:
    """Return whether Airflow needs a DAG: where it runs a task, that of the task alone."""
    return get_parsing_context().dag_id in (None, dag_id)


@cache
def _names() -> Mapping[str, Sequence[str]]:
    return suggested_names()
