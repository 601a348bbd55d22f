"""Calls of gRPC that no signal meets halfway.

A handler of a signal raises in the main thread wherever that is: a task is stopped, or times out.
Inside of gRPC it leaves a lock of the channel taken, and each later call waits for that for ever,
also those by which PySpark releases what ran. So another thread makes the calls of the main thread,
which waits for what they answer.
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

    def __init__(self) -> None:
        self._work: SimpleQueue[Callable[[], object] | None] | None = None  # of its thread

    def __deepcopy__(self, _: object) -> "CallsApart":
        return CallsApart()  # of the channel of a copied session

    def __del__(self) -> None:
        if self._work is not None:
            self._work.put(None)

    def intercept_unary_unary(self, call: Callable[..., Any], details: Any, request: Any) -> Any:
        """Return the answer of a call."""
        return self.answer(lambda: call(details, request))

    intercept_stream_unary = intercept_unary_unary

    def intercept_unary_stream(
        self, call: Callable[..., Any], details: Any, request: Any
    ) -> Iterator[Any]:
        """Return the answers of a call."""
        return _Answers(self, self.answer(lambda: call(details, request)))

    def answer(self, call: Callable[[], T]) -> T:
        """Return what a call returns, or raise what it raises."""
        if threading.current_thread() is not threading.main_thread():
            return call()  # only the main thread handles signals
        answers = SimpleQueue[tuple[T | None, BaseException | None]]()

        def work() -> None:
            try:
                answers.put((call(), None))
            except BaseException as error:
                answers.put((None, error))

        if (asked := self._work) is None:
            asked = SimpleQueue()
            threading.Thread(target=_work, args=[asked], daemon=True).start()
            self._work = asked
        try:
            asked.put(work)
            found, error = answers.get()
        except BaseException:  # interrupted: the call goes on, until the server ends it
            self._work = None
            asked.put(None)
            raise
        if error is not None:
            raise error
        return found  # type: ignore[return-value]  # there is one if there is no error


class _Answers(Iterator[Any]):
    def __init__(self, apart: CallsApart, stream: Iterator[Any]) -> None:
        self._apart = apart
        self._stream = stream

    def __next__(self) -> Any:
        return self._apart.answer(lambda: next(self._stream))


def _work(asked: "SimpleQueue[Callable[[], object] | None]") -> None:
    while (call := asked.get()) is not None:
        call()
