"""How a reader reads the batches of a group: one value, from a form to the plan of a batch."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, TypedDict, Unpack

from weir.errors import InvalidInput, check_choice
from weir.reader_groups.batches.budget import Budget
from weir.settings import Settings

ORDERS = ("segment", "stream", "none")
IN_MEMORY = 256 << 20  # bytes of files, which are several times as many in memory
Manager = Callable[[Mapping[str, str]], object]  # from the stores to an `AdjunctStoreManager`


class Options(TypedDict, total=False):
    """How a program asks for a `Reading`; see `Reading.of`."""

    order: str
    expected_readers: int
    label: str
    batch_events: int
    batch_bytes: int
    batch_files: int
    adjuncts: Sequence[str]
    manager: Manager | None


_NUMBER, _TEXT = (Integral, "a whole number"), (str, "a text")
# Of what kind each of them must be, for programs without a type checker.
_KINDS: dict[str, tuple[Any, str]] = {
    "order": _TEXT, "expected_readers": _NUMBER, "label": _TEXT, "batch_events": _NUMBER,
    "batch_bytes": _NUMBER, "batch_files": _NUMBER, "adjuncts": (Iterable, "a list of names"),
    "manager": ((Callable, type(None)), "a function"),
}  # fmt: skip


@dataclass(frozen=True)
class Reading:
    """How a reader reads.

    `budget`: the most that a batch reads. `order`: as in `weir.spark.read`; with "stream" a batch
    ends where write order allows it. `expected_readers`: how many readers the group is to be shared
    among, at least. `label`: the name by which pins of the group refer to the reader. `adjuncts`:
    adjunct stores, of each of which a version is pinned to every batch. `manager`: makes the
    `AdjunctStoreManager` that decides what of them, and of the group's streams, is delivered.
    """

    budget: Budget
    order: str = "segment"
    expected_readers: int = 1
    label: str = ""
    adjuncts: tuple[str, ...] = ()
    manager: Manager | None = None

    @classmethod
    def of(
        cls, settings: Settings, *, in_memory: bool = False, **options: Unpack[Options]
    ) -> "Reading":
        """Return how a program wants to read: `batch_events`, `batch_bytes` and `batch_files` are
        its budget, 0 or absent for that of the installation; the others are as above.

        `in_memory`: a batch is held in memory as a whole, so it has at most `IN_MEMORY` bytes of
        files unless `batch_bytes` says otherwise. Raises InvalidInput for a budget below 0, less
        than one expected reader, an unknown order, a value of another kind, and an argument that
        there is not.
        """
        if unknown := options.keys() - Options.__annotations__.keys():
            raise InvalidInput(
                "argument_invalid",
                f"a reader has no argument {min(unknown)!r}; its arguments are "
                f"{', '.join(Options.__annotations__)}.",
            )
        adjuncts = options.get("adjuncts", ())
        if isinstance(adjuncts, str):
            raise InvalidInput(
                "argument_invalid", f"adjuncts is {adjuncts!r}; give a list, [{adjuncts!r}]."
            )
        for name, given in options.items():
            kind, what = _KINDS[name]
            if isinstance(given, bool) or not isinstance(given, kind):
                raise InvalidInput("argument_invalid", f"{name} is {given!r}; it must be {what}.")
        readers = options.get("expected_readers", 1)
        if readers < 1:
            raise InvalidInput(
                "argument_invalid", f"expected_readers is {readers}; it must be 1 or more."
            )
        size = options.get("batch_bytes", 0)
        if in_memory and not size:
            size = min(IN_MEMORY, settings.batch_bytes)
        budget = Budget.within(
            settings, options.get("batch_events", 0), size, options.get("batch_files", 0)
        )
        order = options.get("order", "segment")
        check_choice("order", order, ORDERS)
        return cls(
            budget,
            order,
            readers,
            options.get("label", ""),
            tuple(adjuncts),
            options.get("manager"),
        )
