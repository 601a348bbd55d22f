"""Describe a setting once, for the form that creates its owner and for the one that changes it;
return the settings that a form gives."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, make_dataclass
from types import NoneType
from typing import Any, TypeVar, get_args, get_type_hints

from weir.model.amounts import AGE_PATTERN, NONE, SIZE_PATTERN, parse_age, parse_size
from weir.operations.entries import Keywords
from weir.operations.form import MOST_PATTERN, Form, argument, default_of, is_required

A = TypeVar("A", bound=Form)
Default = str | int | list[str]
UNCHANGED = "unchanged"
REMOVED = "-"  # alone in a list or, if it may be empty, as a text: what was set is removed


@dataclass(frozen=True)
class Setting:
    """A setting of a stream, a reader group or an adjunct store.

    `section`: of the forms that have it. `default`: what the form that creates its owner has; its
    type decides the field. `if_empty`: what an empty field means there, and in the form that
    changes the owner the word `removed_by`. `schema`: JSON schema keywords. `examples`: what its
    field proposes.
    """

    section: str
    title: str
    description: str
    default: Default = ""
    if_empty: str = ""
    removed_by: str = REMOVED
    schema: Keywords = field(default_factory=Keywords)
    examples: Sequence[str] = ()

    def created(self, section: str | None = None) -> Any:
        """Return its field in the form that creates the owner; in another form under another
        section."""
        blank = "0" if isinstance(self.default, int) else "Empty"
        more = f" {blank}: {self.if_empty}." if self.if_empty else ""
        schema = self.schema.copy()
        if "enum" in schema and self.default not in schema["enum"]:  # only a new owner has it
            schema["enum"] = [str(self.default), *schema["enum"]]
        shown = self.section if section is None else section
        return self._field(more, self.default, shown, schema)

    def changed(self) -> Any:
        """Return its field in the form that changes the owner. As it comes, it changes nothing."""
        blank, schema, more = self._unchanged()
        return self._field(more, blank, self.section, schema)

    def _field(self, more: str, default: Default, section: str, schema: Keywords) -> object:
        description = self.description + more
        return argument(
            self.title, description, default, section=section, examples=self.examples, **schema
        )

    def _unchanged(self) -> tuple[Default, Keywords, str]:
        """Return the default, the schema and a sentence more of the field that changes nothing."""
        schema = self.schema.copy()
        if isinstance(self.default, bool):
            return UNCHANGED, {"enum": [UNCHANGED, "yes", "no"]}, ""
        if "enum" in schema:
            return UNCHANGED, {"enum": [UNCHANGED, *schema["enum"]]}, ""
        if isinstance(self.default, int):
            return 0, {**schema, "minimum": 0}, " 0: unchanged."
        if isinstance(self.default, list):
            schema["items"] = {"type": "string", "minLength": 1, "maxLength": 100}
            return [], schema, f" They replace all; a single {REMOVED} removes them."
        removed = f"; {self.removed_by}: {self.if_empty}" if self.if_empty else ""
        return "", schema, f" Empty: unchanged{removed}."


def with_settings(
    settings: Mapping[str, Setting], *, changed: Collection[str] | None = None
) -> Callable[[type[A]], type[A]]:
    """Return what makes a form of one that has only its own arguments: with a field for each
    setting, as the form that creates its owner has it, or that which changes it. `changed`: the
    settings that the latter leaves out.

    Settings come after the arguments that are in no section, and before those that are.
    """

    def made(form: type[A]) -> type[A]:
        own = [(one.name, one.type, one) for one in fields(form)]
        added = []
        for name, one in settings.items():
            if name not in (changed or ()):
                shown = one.created() if changed is None else one.changed()
                blank = default_of(shown)
                added.append((name, list[str] if blank == [] else type(blank), shown))
        late = [one for one in own if "section" in one[2].metadata["shown"]]
        early = [one for one in own if one not in late]
        members = {
            name: one for name, one in vars(form).items()
            if name in ("__doc__", "__module__") or isinstance(one, property)
        }  # fmt: skip
        return make_dataclass(
            form.__name__, [*early, *added, *late], frozen=True, namespace=members
        )

    return made


def settings_of(form: Form, configuration: type[Form]) -> dict[str, object]:
    """Return the settings of a configuration that a form gives, by their names and as the
    configuration has them. What a form requires is no setting.

    A field that is empty, 0 or, if there is such a choice, `unchanged` gives nothing. `none` gives
    None, or 0 for a setting that always has a value. Raises InvalidInput for an amount that is too
    small.
    """
    kinds, known = get_type_hints(configuration), {f.name: f for f in fields(configuration)}
    return {
        one.name: _setting(value, kinds[one.name], known[one.name].default, schema.get("pattern"))
        for one in fields(form)
        if one.name in known and not is_required(one)
        for schema, value in [(one.metadata["schema"], getattr(form, one.name))]
        if _is_given(value, schema.get("enum", ()))
    }


def _is_given(value: object, choices: Collection[str]) -> bool:
    if isinstance(value, str):
        return bool(value.strip()) and not (value == UNCHANGED and value in choices)
    return isinstance(value, bool) or bool(value)


def _setting(value: object, kind: object, default: object, pattern: str | None) -> object:
    """Return a value that was filled in as a setting of this type and default."""
    if isinstance(value, list):
        return () if value == [REMOVED] else tuple(value)
    if not isinstance(value, str):
        return value
    value = value.strip()
    if value == NONE and NoneType in get_args(kind):
        return None
    if value == REMOVED and default == "":
        return ""
    if kind is bool:
        return value == "yes"
    if pattern == AGE_PATTERN:
        return parse_age(value) or 0
    if pattern == SIZE_PATTERN:
        return parse_size(value)
    return int(value) if pattern == MOST_PATTERN else value
