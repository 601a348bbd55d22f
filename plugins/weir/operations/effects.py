"""An argument that counts only beside another one is refused without it: it would change nothing,
and whoever gives it means something."""

from dataclasses import fields

from weir.errors import InvalidInput
from weir.front_ends import called, leave_out
from weir.operations.form import Form, default_of


def check_effects(arguments: Form) -> None:
    """Raise InvalidInput for an argument of a form that would change nothing. One that is what the
    form begins with counts as not given. A setting is no such argument: it is kept, and shown, and
    counts as soon as what it stands beside is set."""
    begins = {one.name: default_of(one) for one in fields(arguments)}
    for one in fields(arguments):
        beside, unless = one.metadata.get("beside", ""), one.metadata.get("unless", "")
        if getattr(arguments, one.name) == begins[one.name]:
            continue
        if beside and not getattr(arguments, beside):
            when, instead = f"{called(beside)} is given", f"give {called(beside)}, too"
        elif unless and getattr(arguments, unless) != begins[unless]:
            when, instead = f"{called(unless)} is not given", leave_out(unless)
        else:
            continue
        raise InvalidInput(
            "arguments_conflict",
            f"{called(one.name)} has no effect, because it counts only if {when}; "
            f"{leave_out(one.name)}, or {instead}.",
        )
