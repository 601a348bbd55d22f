"""Options of the command line from the descriptions of a job's arguments.

They are only collected here; the job's own check (`weir.operations.form.parse`) checks them.
"""

import argparse
import contextlib
import difflib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, fields
from typing import Any, NoReturn

from weir.errors import InvalidInput
from weir.front_ends import option, positional
from weir.operations.entries import Schema
from weir.operations.form import Form, is_required, json_schema
from weir.operations.jobs import FORMS


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are Weir's, and so one sentence."""

    def error(self, message: str) -> NoReturn:
        raise InvalidInput("argument_invalid", f"{message}; `{self.prog} --help` says more.")

    def parse_known_args(  # type: ignore[override]  # it has more forms
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Refuse what is not known here: argparse leaves that to the parser of all commands, whose
        help does not say what this command takes."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown

    def format_usage(self) -> str:
        """Return the usage, in which what is required has no brackets. argparse itself must not
        miss it, because the check of the job says more."""
        with self._required_shown():
            return super().format_usage()

    def format_help(self) -> str:
        """Return the help, with the same usage."""
        with self._required_shown():
            return super().format_help()

    @contextlib.contextmanager
    def _required_shown(self) -> Iterator[None]:
        needed = [one for one in self._actions if getattr(one, "needed", False)]
        for one in needed:
            one.required = True
        try:
            yield
        finally:
            for one in needed:
                one.required = False

    def _check_value(self, action: argparse.Action, value: object) -> None:
        """Refuse a command that does not exist, with the most similar one."""
        if action.choices is not None and value not in action.choices:
            meant = difflib.get_close_matches(str(value), action.choices, n=1)
            hint = f" (did you mean {meant[0]!r}?)" if meant else ""
            raise argparse.ArgumentError(None, f"there is no command {str(value)!r}{hint}")

    def _match_arguments_partial(
        self, actions: Sequence[argparse.Action], arg_strings_pattern: str
    ) -> list[int]:
        """Return how many words each positional argument takes. One that may be missing waits for
        the words after the next option, which Python 3.11 does not do."""
        counts = super()._match_arguments_partial(actions, arg_strings_pattern)
        while counts and counts[-1] == 0 and "A" in arg_strings_pattern[sum(counts) :]:
            counts.pop()
        return counts


_REAL = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?"


def options(job: str, name: str) -> list[str]:
    """Return the names of a job's argument, of which sentences say the first. One that has another
    name than in forms and files is found under both."""
    return list(dict.fromkeys([option(job, name), f"--{name.replace('_', '-')}"]))


def add_arguments(parser: argparse.ArgumentParser, job: str) -> None:
    """Add an option for each argument of a job. One that is not given is not in the result."""
    form = FORMS[job]
    known = {one.name: one for one in fields(form)}
    subjects = positional(job, known)
    for name in [*subjects, *(n for n in known if n not in subjects)]:
        one = known[name]
        schema = json_schema(form, one)
        given: dict[str, Any] = {"default": argparse.SUPPRESS}
        given["help"] = _described(one, schema, name in subjects).replace("%", "%%")
        if name in subjects:
            if is_required(one):
                del given["default"]
            if schema["type"] == "array":
                given["nargs"] = "+" if is_required(one) else "*"
            elif not is_required(one):
                given["nargs"] = "?"
            parser.add_argument(name, **given)
            continue
        flags = options(job, name)
        if schema["type"] == "boolean":
            given["action"] = argparse.BooleanOptionalAction
        elif schema["type"] == "array":
            given |= {"action": "append", "metavar": flags[0].strip("-").upper()}
        else:
            given["metavar"] = "|".join(schema.get("enum", [flags[0].strip("-").upper()]))
        added = parser.add_argument(*flags, dest=name, **given)
        added.needed = is_required(one)  # type: ignore[attr-defined]


def _described(known: Field[object], schema: Schema, subject: bool) -> str:
    """Return what a form shows beside a field: whether it must be filled in, how several entries
    are given, and what it has at first."""
    parts = [known.metadata["description"]]
    if is_required(known) and not subject:
        parts.append("Required.")
    if schema["type"] == "array" and not subject:
        parts.append("Give it once for each.")
    if known.default is True:
        parts.append("Default: yes.")
    elif known.default is not MISSING and known.default not in ("", 0, False):
        parts.append(f"Default: {known.default}.")
    return " ".join(parts)


def given_arguments(form: type[Form], given: argparse.Namespace) -> dict[str, object]:
    """Return the arguments of a job that were given, as its check takes them."""
    return {
        one.name: _typed(getattr(given, one.name), json_schema(form, one))
        for one in fields(form)
        if hasattr(given, one.name)
    }


def _typed(value: object, schema: Schema) -> object:
    """Return a text as the number or JSON object that it is; other texts are left to the job's
    check."""
    if schema["type"] in ("integer", "number") and isinstance(value, str):
        # Python also reads the digits of other scripts, and 1_000.
        for form, kind in ((r"[+-]?[0-9]{1,30}", int), (_REAL, float)):
            if re.fullmatch(form, value):
                return kind(value)
    if schema["type"] == "object" and isinstance(value, str):
        with contextlib.suppress(ValueError, RecursionError):
            return json.loads(value)
    return value
