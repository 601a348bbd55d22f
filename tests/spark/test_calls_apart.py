"""Calls that another thread makes, without a server."""

import gc
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from weakref import ref

import pytest

from weir.spark.base.calls_apart import apart


@contextmanager
def a_signal_soon(told: "signal._HANDLER") -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, told)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_call_is_made_apart_and_an_error_keeps_what_it_has() -> None:
    assert apart(threading.current_thread) is not threading.main_thread()

    def refused() -> None:
        error = ValueError("refused")
        error.details = ["more"]  # type: ignore[attr-defined]  # as gRPC's have
        raise error

    with pytest.raises(ValueError, match="refused") as raised:
        apart(refused)
    assert raised.value.details == ["more"]  # type: ignore[attr-defined]
    with pytest.raises(StopIteration):
        apart(lambda: next(iter([])))


def test_a_handler_may_call_while_a_call_waits() -> None:
    ends = threading.Event()

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        apart(ends.set)

    with a_signal_soon(interrupt):
        assert apart(lambda: ends.wait(20)), "the handler's call waited for the one that it ends"


def test_a_signal_ends_the_wait_and_later_calls_are_made() -> None:
    ends, begun = threading.Event(), time.monotonic()
    with pytest.raises(KeyboardInterrupt), a_signal_soon(signal.default_int_handler):
        apart(lambda: ends.wait(20))
    assert apart(lambda: "another") == "another"
    assert time.monotonic() - begun < 10
    ends.set()


def test_a_forked_process_makes_calls_though_its_parent_has() -> None:
    assert apart(lambda: 1) == 1
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        os._exit(apart(lambda: 3))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3


def test_no_thread_and_no_answer_is_left_of_a_call() -> None:
    class Answer:
        pass

    before, answer = threading.active_count(), apart(Answer)
    gone = ref(answer)
    del answer
    gc.collect()
    assert gone() is None
    assert threading.active_count() == before
