"""Made by `make docs` from spark_jobs.process."""

from collections.abc import Callable
from typing import Any, Literal

from airflow.sdk import XComArg
from airflow.sdk.bases.decorator import TaskDecorator

def weir_process(
    python_callable: Callable[..., Any] | None = None,
    *,
    reader_group: str | XComArg,
    outputs: list[str] | XComArg = ...,
    order: Literal["segment", "stream", "none"] | XComArg = "segment",
    engine: Literal["auto", "spark", "pyarrow"] | XComArg = "pyarrow",
    readers: int | XComArg = 1,
    on_error: Literal["stop", "split", "quarantine"] | XComArg = "stop",
    label: str | XComArg = "",
    batch_events: int | XComArg = 0,
    batch_bytes: str | XComArg = "",
    batch_files: int | XComArg = 0,
    batch_retries: int | XComArg = 0,
    adjuncts: list[str] | XComArg = ...,
    manager: str | XComArg = "",
    conn_id: str = "",
    spark_conn_id: str = "spark_default",
    **kwargs: Any,
) -> TaskDecorator:
    """Call a function of the DAG file with what a reader group has not read yet, exactly once."""
