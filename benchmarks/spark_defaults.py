"""Figures once more, both sides with Spark's own defaults in place of those of Weir's jobs.

A JVM keeps the options that it started with, so these run in a process of their own.
"""

import gc
import multiprocessing
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

from benchmarks import data_path
from benchmarks.figure import Figure
from benchmarks.jvm import options_of, plain_session
from benchmarks.setting import Setting

_NUMBERS = 1_000_000  # that each process may give out


def with_defaults(make: Callable[[Setting], Figure], setting: Setting) -> Figure:
    """Return a figure whose sides run in another process, with Spark's own defaults."""
    spawn = multiprocessing.get_context("spawn")
    here, there = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(there, make, _shared(setting)))
    process.start()
    there.close()
    setting.at_end.callback(process.join)
    setting.at_end.callback(here.close)  # which ends it
    name, what, warm_up, options = here.recv()

    def ask(side: str) -> None:
        here.send(side)
        here.recv()

    return Figure(
        f"{name}/spark-defaults",
        f"{what}, both with Spark's own defaults",
        partial(ask, "ours"),
        partial(ask, "reference"),
        limit=None,
        warm_up=warm_up,
        notes={"jvm": options},
    )


def _shared(setting: Setting) -> dict[str, Any]:
    first = setting.number() * _NUMBERS
    names = ("folder", "full", "dsn", "server")
    return {name: getattr(setting, name) for name in names} | {
        "_numbers": iter(range(first, first + _NUMBERS))
    }


def _serve(pipe: Connection, make: Callable[[Setting], Figure], shared: dict[str, Any]) -> None:
    """Make the figure, and run its sides as they are asked for, until nobody asks any more."""
    with ExitStack() as at_end:
        setting = Setting(**shared, at_end=at_end, new_session=plain_session)
        figure = make(setting)
        pipe.send((figure.name, figure.what, figure.warm_up, options_of(setting.spark)))
        gc.disable()
        try:
            while True:
                pipe.send(getattr(figure, pipe.recv())())
                gc.collect()  # not while a side runs
        except EOFError:
            setting.close()


FIGURES = {
    f"{name}/spark-defaults": partial(with_defaults, make)
    for name, make in data_path.FIGURES.items()
}
