"""Calls of gRPC that no signal meets halfway.

A handler of a signal raises in the main thread wherever that is: a task is stopped, or times out.
Inside of gRPC it leaves a lock of the channel taken, and each later call waits for that for ever,
also those by which PySpark releases what ran. So another thread makes each call of the main thread,
which waits for what it answers. A thread for each: a handler may call while a call waits, a process
that is forked has no thread of before, and none is left of a session that is over.
"""

import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any, TypeVar

import grpc  # type: ignore[import-untyped]

T = TypeVar("T")


class CallsApart(
    grpc.UnaryUnaryClientInterceptor,  # type: ignore[misc]  # gRPC has no types
    grpc.UnaryStreamClientInterceptor,  # type: ignore[misc]  # gRPC has no types
    grpc.StreamUnaryClientInterceptor,  # type: ignore[misc]  # gRPC has no types
):
    """Make the calls of a channel apart."""

    def intercept_unary_unary(self, call: Callable[..., Any], details: Any, request: Any) -> Any:
        """Return the answer of a call."""
        return apart(lambda: call(details, request))

    intercept_stream_unary = intercept_unary_unary

    def intercept_unary_stream(
        self, call: Callable[..., Any], details: Any, request: Any
    ) -> Iterator[Any]:
        """Return the answers of a call."""
        return _Answers(apart(lambda: call(details, request)))


def apart(call: Callable[[], T]) -> T:
    """Return what a call returns, or raise what it raises. If a signal interrupts it, it goes on,
    until the server ends it."""
    if threading.current_thread() is not threading.main_thread():
        return call()  # only the main thread handles signals
    answers = SimpleQueue[tuple[T | None, BaseException | None]]()

    def work() -> None:
        try:
            answers.put((call(), None))
        except BaseException as error:
            answers.put((None, error))

    threading.Thread(target=work, daemon=True).start()
    found, error = answers.get()
    if error is not None:
        try:
            raise error
        finally:
            del error  # whose traceback has this frame, and all that called it
    return found  # type: ignore[return-value]  # there is one if there is no error


class _Answers(Iterator[Any]):
    def __init__(self, stream: Iterator[Any]) -> None:
        self._stream = stream

    def __next__(self) -> Any:
        return apart(lambda: next(self._stream))
