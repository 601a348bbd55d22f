"""Which arguments of an operation count only beside another one: given without it they would change
nothing, and whoever gives them means something."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from weir.errors import InvalidInput
from weir.front_ends import called, leave_out
from weir.operations.form import default_of


class Beside(NamedTuple):
    """What must be given beside an argument: `other`, as one of the `values` (none: as anything
    but nothing)."""

    other: str
    values: tuple[object, ...] = ()

    def holds(self, given: object) -> bool:
        """Return whether the other argument is so that this one counts."""
        return given in self.values if self.values else bool(given)


# By form and argument. A setting is no such argument: it is kept, and shown, and counts as soon as
# what it stands beside is set.
COUNTS: Mapping[tuple[str, str], Beside] = {
    ("CheckpointReaderGroup", "barrier"): Beside("cancel", (False,)),
    ("CheckpointReaderGroup", "patience"): Beside("barrier"),
    ("Erase", "everything"): Beside("condition"),
    ("Erase", "subject"): Beside("keys"),
    ("UpdateReaderGroup", "start"): Beside("streams"),
    ("Verify", "engine"): Beside("contents"),
}


def check_effects(arguments: Any) -> None:
    """Raise InvalidInput for an argument of a form that would change nothing. One that is what the
    form begins with counts as not given."""
    for one in fields(arguments):
        beside = COUNTS.get((type(arguments).__name__, one.name))
        if beside is None or getattr(arguments, one.name) == default_of(one):
            continue
        if beside.holds(getattr(arguments, beside.other)):
            continue
        other = called(beside.other)
        when, instead = f"{other} is given", f"give {other}, too"
        if beside.values:  # all of which say that the other argument is not given
            when, instead = f"{other} is not given", leave_out(beside.other)
        raise InvalidInput(
            "argument_without_effect",
            f"{called(one.name)} has no effect, because it counts only if {when}; "
            f"{leave_out(one.name)}, or {instead}.",
        )
