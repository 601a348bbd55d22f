"""What may change in the columns of a stream, and what stays (semantics 5.5): a column keeps the
name that it has in files, whatever it is called, so no file is written again."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from weir.errors import InvalidInput
from weir.model.adjunct_configuration import AdjunctDefinition
from weir.model.names import REJECTED, check_user_columns
from weir.model.schema import (
    GUESSED,
    MOST_DIGITS,
    Field,
    Kind,
    is_alike,
    merge,
    parts_of,
    plain,
    same_type,
    show,
    stored_name,
    wider,
)
from weir.model.stream_configuration import Configuration
from weir.model.transform_nodes import Call, Node, Transform, written
from weir.model.transforms import condition_of, is_alone, value_of, values_of

_OF_TYPE = frozenset("cast coalesce concat left lower string substring trim upper".split())


@dataclass(frozen=True)
class ColumnChanges:
    """Changes of a stream's columns, by the names that these have before: columns to add, new names
    by name, columns to drop, and columns with the wider types that they get. `reserve`: names that
    no column gets in files from now on, as if one had been dropped."""

    add: Sequence[Field] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    drop: Sequence[str] = ()
    widen: Sequence[Field] = ()
    reserve: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.add or self.rename or self.drop or self.widen)

    @property
    def touched(self) -> dict[str, str]:
        """What happens to the columns that are there, by name: `dropped`, `renamed to ...` or
        `widened to ...`."""
        done = dict.fromkeys(self.drop, "dropped")
        for one in self.widen:
            done[one["name"]] = f"widened to {show(one['type'])}"
        for name, new in self.rename.items():
            wide = f" and {done[name]}" if name in done else ""
            done[name] = f"renamed to {new}{wide}"
        return done

    def applied(
        self, stream: str, fields: list[Field] | None, dropped: Sequence[str]
    ) -> tuple[list[Field], list[str]]:
        """Return the columns after these changes, and the names in files that no column may get any
        more (`dropped`: those so far).

        Raises InvalidInput for a column that is not there, is changed twice, gets a name that
        another one has, or a type that does not hold its values, and if no column is left.
        """
        if stream.endswith(REJECTED) and self:
            raise InvalidInput(
                "name_invalid",
                f"{stream} has the columns that Weir gives it; change those of another stream.",
            )
        if fields is None and not self.touched:
            return merge(stream, None, list(self.add), self.reserve), list(self.reserve)
        fields = fields or []
        self._check(stream, [one["name"] for one in fields])
        wide = {one["name"]: one["type"] for one in plain(list(self.widen))} if self.widen else {}
        kept, gone = (
            list[Field](),
            [*dropped, *(name for name in self.reserve if name not in dropped)],
        )
        for one in fields:
            name = one["name"]
            if name in self.drop:
                gone.append(stored_name(one))
                continue
            changed: Field = {**one}
            if name in wide:
                changed["type"] = _widened(stream, one, wide[name])
                # A person chose this one, so `7` may be `7.00` in it from now on.
                said = one.get("metadata") or {}
                changed["metadata"] = {key: said[key] for key in said if key != GUESSED}
            if name in self.rename:
                changed["name"], changed["stored"] = self.rename[name], stored_name(one)
                if changed["name"] == changed["stored"]:  # it has its first name again
                    del changed["stored"]
            kept.append(changed)
        check_user_columns([one["name"] for one in kept])
        if not kept:
            raise InvalidInput(
                "columns_invalid", f"stream {stream} would have no column left; keep at least one."
            )
        if self.add:
            known = {one["name"]: one for one in self.add}
            for one in kept:
                wanted = known.get(one["name"])
                if wanted and "default" in wanted and wanted["default"] != one.get("default"):
                    raise default_is_fixed(stream, one, wanted)
            given = [*(one for one in kept if one["name"] not in known), *self.add]
            kept = merge(stream, kept, given, gone)
        return kept, gone

    def _check(self, stream: str, names: Sequence[str]) -> None:
        listed = [*self.drop, *self.rename, *(one["name"] for one in self.widen)]
        for name in listed:
            if name not in names:
                raise InvalidInput(
                    "column_unknown",
                    f"stream {stream} has no column {name!r} (it has "
                    f"{', '.join(list(names)[:8])}); correct the name.",
                )
        twice = [name for name in self.drop if listed.count(name) > 1]
        if twice or len(set(self.rename.values())) < len(self.rename):
            which = twice[0] if twice else next(iter(self.rename))
            raise InvalidInput(
                "argument_invalid",
                f"column {which!r} is to be changed in two ways, or two columns are to get one "
                "name; ask for one of them.",
            )


NOTHING = ColumnChanges()


def default_is_fixed(stream: str, there: Field, wanted: Field) -> InvalidInput:
    """Return the error that a column which is there gets no other default."""
    has = f"has the default {there['default']!r}" if "default" in there else "has none"
    return InvalidInput(
        "change_impossible",
        f"column {wanted['name']!r} of stream {stream} is to have the default "
        f"{wanted['default']!r}, but it is there and {has}, which never changes; leave the default "
        "out.",
    )


def followed(
    stream: str,
    configuration: Configuration,
    changes: ColumnChanges,
    types: Mapping[str, Kind],
    *,
    new_time: bool,
) -> Configuration:
    """Return the configuration of a stream after changes of its columns: its routing key and its
    event time keep a column under its new name.

    `types`: of the columns before. `new_time`: the event time is changed at the same time, and
    named as the columns are called then. Raises InvalidInput for a change by which a routing key
    may mean something else, or after which an event time can't be computed.
    """
    _check_key_stays_null(stream, configuration.routing_key, changes, types)
    wide = {one["name"]: one["type"] for one in changes.widen}
    expressions = {"routing_key": configuration.routing_key}
    if configuration.event_time is not None and not new_time:
        expressions["event_time"] = configuration.event_time
    new = {name.lower(): to for name, to in changes.rename.items()}
    for setting, expression in expressions.items():
        transform = value_of(expression, setting)
        used = {name.lower() for name in transform.columns}
        for name, what in changes.touched.items():
            if name.lower() not in used:
                continue
            same = keeps_text(wide.get(name), types[name]) or (
                setting == "event_time"
                and not _gets_decimal(wide.get(name), types[name])
                and not _is_of_type(transform.node)
            )
            if name in changes.drop or (name in wide and not same):
                advice = "leave the column as it is, and add another one"
                if setting == "event_time":
                    advice = "give another event time in the same update, or none"
                raise InvalidInput(
                    "change_impossible",
                    f"column {name!r} of stream {stream} is to be {what}, but the "
                    f"{setting.replace('_', ' ')} {expression!r} is made of it; {advice}.",
                )
        expressions[setting] = transform.renamed(new)
    return replace(
        configuration,
        routing_key=expressions["routing_key"],
        event_time=expressions.get("event_time", configuration.event_time),
    )


def _check_key_stays_null(
    stream: str, routing_key: str, changes: ColumnChanges, types: Mapping[str, Kind]
) -> None:
    """Check that events which have been spread, because no append so far had the column of their
    routing key, get no key."""
    there = {name.lower() for name in types}
    used = {name.lower() for name in value_of(routing_key, "routing key").columns}
    filled = [*changes.rename.values(), *(one["name"] for one in changes.add if "default" in one)]
    for name in filled:
        if there and name.lower() in used - there:
            raise InvalidInput(
                "change_impossible",
                f"a column {name!r} is to come into stream {stream} with values in the events that "
                f"are there, but the routing key {routing_key!r}, by which they were placed, was "
                "null in them; add a column of that name without a default.",
            )


def followed_definition(
    definition: AdjunctDefinition, rename: Mapping[str, str]
) -> AdjunctDefinition:
    """Return the definition of a store after columns have been renamed, which it uses under their
    new names. A function stays."""
    new = {name.lower(): to for name, to in rename.items()}
    found = {}
    for part in ("key", "value", "delete_when"):
        text = getattr(definition, part)
        if text and text not in definition.functions:
            found[part] = (
                renamed_values(text, new)
                if part == "value"
                else transforms_in(part, text)[0].renamed(new)
            )
    return replace(definition, **found)


def transforms_in(part: str, text: str) -> list[Transform]:
    """Return what a part of a store's definition has: its `key`, its `value` or its `delete_when`;
    nothing if it is empty. Raises InvalidInput."""
    if not text:
        return []
    if part == "value":
        return list(values_of(text, part).values())
    return [value_of(text, part) if part == "key" else condition_of(text, part)]


def renamed_values(text: str, new: Mapping[str, str]) -> str:
    """Return the text of a value after columns were renamed, in which its own columns are called as
    before. `new`: by the names in lower case. Raises InvalidInput."""
    found = values_of(text, "value")
    if not any(name.lower() in new for one in found.values() for name in one.columns):
        return text
    if is_alone(text, found):
        return found["value"].renamed(new)
    texts = {name: one.renamed(new) for name, one in found.items()}
    return ", ".join(
        one if one == written(name) else f"{one} AS {written(name)}" for name, one in texts.items()
    )


def _widened(stream: str, one: Field, wanted: Kind) -> Kind:
    kind = one["type"]
    if not same_type(kind, wanted) and not holds(wanted, kind):
        raise InvalidInput(
            "change_impossible",
            f"column {one['name']!r} of stream {stream} is {show(kind)}, of which "
            f"{show(wanted)} does not hold every value exactly; a column can become a longer whole "
            "number, a decimal of a whole number (with at least 20 digits before the point for a "
            "long, else 10), a double of a float, a decimal with more digits, or a timestamp_ntz "
            "of a date; for another type, add a column.",
        )
    digits = re.match(r"decimal\((\d+),", show(wanted))
    if "default" in one and digits and int(digits[1]) > MOST_DIGITS:
        raise InvalidInput(
            "change_impossible",
            f"column {one['name']!r} of stream {stream} has the default {one['default']!r}, and is "
            f"to be {show(wanted)}, but Spark reads defaults of decimals of at most {MOST_DIGITS} "
            "digits only; add another column without a default.",
        )
    return wanted


def holds(wide: Kind, narrow: Kind) -> bool:
    """Return whether a type holds all values of another one, and Spark and pyarrow read files that
    have the other one as this one."""
    if same_type(wide, narrow):
        return True
    if isinstance(wide, str) and isinstance(narrow, str):
        return wider(narrow, wide) == wide
    return is_alike(wide, narrow) and all(map(holds, parts_of(wide), parts_of(narrow)))


def keeps_text(wide: Kind | None, narrow: Kind) -> bool:
    """Return whether each value has the same text in both types, so that a routing key does not
    change when its column is widened."""
    if not isinstance(wide, str) or not isinstance(narrow, str):
        return same_type(wide, narrow)
    numbers = ("byte", "short", "integer", "long")
    if wide in numbers and narrow in numbers:
        return True
    scales = [one.rpartition(",")[2] for one in (wide, narrow) if one.startswith("decimal(")]
    return wide == narrow or (len(scales) == 2 and scales[0] == scales[1])


def _gets_decimal(wide: Kind | None, narrow: Kind) -> bool:
    """Return whether a whole number becomes a decimal: files then have the time in another way."""
    counts = [show(one).count("decimal(") for one in (wide or narrow, narrow)]
    return counts[0] > counts[1]


def _is_of_type(node: Node) -> bool:
    """Return whether a transform makes another value of the same one in a wider type."""
    return isinstance(node, Call) and (node.name in _OF_TYPE or any(map(_is_of_type, node.args)))


def columns_at(versions: Iterable[list[Field]], asked: int) -> list[Field]:
    """Return the columns of a version (1, 2 ...) of a schema, each with the widest type that it
    got, as newer files may have values of that type."""
    found: list[Field] = []
    types: dict[str, Kind] = {}
    for version, fields in enumerate(versions, start=1):
        types |= {stored_name(one): one["type"] for one in fields}
        if version == asked:
            found = fields
    return [{**one, "type": types[stored_name(one)]} for one in found]


def typed_before(
    versions: Sequence[tuple[int, list[Field]]],
) -> list[tuple[int, list[Field]]]:
    """Return the columns of the newest version of a schema with the types that they had before,
    each with the clock up to which they had these, oldest first; nothing if no type has changed.

    `versions`: each with the clock from which on it was the newest."""
    found: list[tuple[int, list[Field]]] = []
    now = versions[-1][1] if versions else []
    for (_, fields), (until, _) in pairwise(versions):
        types = {stored_name(one): one["type"] for one in fields}
        then: list[Field] = [
            {**one, "type": types.get(stored_name(one), one["type"])} for one in now
        ]
        if found and found[-1][1] == then:
            found.pop()
        found.append((until, then))
    while found and found[-1][1] == now:
        found.pop()
    return found
