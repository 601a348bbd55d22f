"""Compare what is declared with what exists: what is to be changed, and what that may lose."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TypedDict

from weir.adjunct.stores import AdjunctStore, bound_to_another
from weir.annex.declarations.declared import Declared, DeclaredStream
from weir.annex.declarations.state import Known, KnownGroup, KnownStream
from weir.errors import Conflict, InvalidInput, NotFound
from weir.model.adjunct_configuration import AdjunctConfiguration, AdjunctDefinition
from weir.model.amounts import AGE_PATTERN, NONE, SIZE_PATTERN, say_age, say_size
from weir.model.column_changes import ColumnChanges, followed, followed_definition
from weir.model.names import stream_name
from weir.model.new_columns import AUTOMATIC
from weir.model.schema import Field
from weir.model.stream_configuration import Configuration
from weir.operations import group_settings, store_settings, stream_settings
from weir.operations.asked import Asked, AskedGroup, AskedStore, AskedStream
from weir.operations.consumers import AskedConsumer

_SAYS = {AGE_PATTERN: say_age, SIZE_PATTERN: say_size}
_AMOUNTS = {
    name: _SAYS[one.schema["pattern"]]
    for part in (stream_settings, group_settings, store_settings)
    for name, one in part.SETTINGS.items()
    if one.schema.get("pattern") in _SAYS
}


Changes = dict[str, tuple[object, object]]  # from a setting to its old and its new value


class Changed(TypedDict):
    """A `Difference` in the report of a job. `action`: create or change; `changes`: by setting,
    `from` what `to` what."""

    kind: str
    name: str
    action: str
    changes: dict[str, dict[str, object]]
    loses: list[str]
    named_by: list[str]


@dataclass(frozen=True)
class Difference:
    """What differs of a stream, an adjunct store, a reader group or a consumer. `new`: it does not
    exist yet. `changes`: from a setting to its old and its new value. `asked`: the same as what it
    is brought to. `loses`: why the change may lose data. `named_by`: who names the columns that it
    changes."""

    kind: str
    name: str
    new: bool
    changes: Changes
    asked: Asked
    loses: list[str] = field(default_factory=list)
    columns: list[Field] = field(default_factory=list)  # that a stream has before the change
    named_by: list[str] = field(default_factory=list)

    def report(self) -> Changed:
        """Return it for the job's report."""
        shown = {name: {"from": old, "to": new} for name, (old, new) in self.changes.items()}
        action = "create" if self.new else "change"
        return {"kind": self.kind, "name": self.name, "action": action, "changes": shown,
                "loses": self.loses, "named_by": self.named_by}  # fmt: skip

    def __str__(self) -> str:
        """Return it in one line."""
        settings = ", ".join(
            f"{name} = {_said(name, new)}"
            if self.new
            else f"{name}: {_said(name, old)} -> {_said(name, new)}"
            for name, (old, new) in self.changes.items()
        )
        loses = f" (may lose data: {'; '.join(self.loses)})" if self.loses else ""
        named = f" ({'; '.join(self.named_by)})" if self.named_by else ""
        return f"{'+' if self.new else '~'} {self.kind} {self.name}: {settings}{loses}{named}"


def _said(name: str, value: object) -> str:
    """Return the value of a setting as a file declares it: 30 d, 500 MB, yes."""
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if name in _AMOUNTS and isinstance(value, int):
        return _AMOUNTS[name](value).replace(",", "") if value else NONE
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def differences(declared: Declared, known: Known) -> list[Difference]:
    """Return what differs, in the order in which it can be changed: streams, stores, groups,
    consumers.

    Raises InvalidInput for a routing key that differs, NotFound for a stream or group that neither
    exists nor is declared, Conflict for a stream that is sealed, and for a store of another stream.
    """
    found = []
    for name, stream in declared.streams.items():
        found.append(_stream(name, stream, known.streams.get(name)))
    readers = [(f"adjunct store {n}", [str(one.stream)]) for n, one in declared.stores.items()]
    readers += [(f"reader group {n}", one.reads) for n, one in declared.groups.items()]
    for reader, names in readers:
        for one in names:
            if one not in declared.streams and one not in known.streams:
                raise NotFound(
                    "stream_not_found",
                    f"{reader} reads stream {one}, which neither exists nor is declared; declare "
                    "it, or correct its name.",
                )
    renames = {one.name: one.asked.columns.rename for one in found
               if isinstance(one.asked, AskedStream)}  # fmt: skip
    streams = {name: one.configuration for name, one in known.streams.items()}
    streams |= {name: one.configuration for name, one in declared.streams.items()}
    for name, store in declared.stores.items():
        kept = known.stores.get(name)
        if kept is not None:
            rename = renames.get(str(kept.stream), {})
            kept = replace(kept, definition=followed_definition(kept.definition, rename))
        found.append(_store(name, store, kept))
    for name, wanted in declared.groups.items():
        found.append(_group(name, wanted, known.groups.get(name)))
    for name, settings in declared.consumers.items():
        if name not in declared.groups and name not in known.groups:
            raise NotFound(
                "group_not_found",
                f"consumer {name} reads with a reader group of its name, which neither exists nor "
                "is declared; declare it under reader_groups.",
            )
        there, group = known.groups.get(name), declared.groups.get(name)
        reads = group.reads if group else there.streams if there else ()
        old = (there.consumer if there else None) or {}
        asked = AskedConsumer(
            name, settings, {one: streams[one] for one in reads if one in streams},
            frozenset(declared.streams),
        )  # fmt: skip
        found.append(Difference("consumer", name, not old, _changes(old, settings), asked))
    return [one for one in found if one.new or one.changes]


def _changes(old: Mapping[str, object], new: Mapping[str, object]) -> Changes:
    names = [*new, *(name for name in old if name not in new)]
    return {n: (old.get(n), new.get(n)) for n in names if old.get(n) != new.get(n)}


def _new(changes: Changes) -> dict[str, object]:
    return {name: new for name, (_, new) in changes.items()}


def _stream(name: str, wanted: DeclaredStream, known: KnownStream | None) -> Difference:
    if known is None:
        written = wanted.columns.written
        settings = asdict(wanted.configuration.created(declared=bool(written)))
        given = {"segments": wanted.segments, **{k: v for k, v in settings.items() if v}}
        given |= {"columns": written} if written else {}
        made = wanted.columns.created(name, wanted.configuration.routing_key)
        shown: Changes = {k: (None, v) for k, v in given.items()}
        asked = AskedStream(stream_name(name), wanted.configuration.__dict__, wanted.segments, made)
        return Difference("stream", name, True, shown, asked)
    settings = asdict(wanted.configuration)
    if wanted.configuration.on_new_column == AUTOMATIC:  # was decided when it was created
        settings["on_new_column"] = known.configuration.on_new_column
    if wanted.configuration.on_missing_key == AUTOMATIC:
        settings["on_missing_key"] = known.configuration.on_missing_key
    more = wanted.columns.changes(name, known.fields, known.dropped)
    now = _followed(name, wanted, known, more)
    changes = _changes(asdict(now), settings)
    if "routing_key" in changes:
        raise InvalidInput(
            "change_impossible",
            f"stream {name} has the routing key {now.routing_key}, and "
            f"{wanted.configuration.routing_key} is declared; the routing key of a stream can't "
            "change, so correct the file, or declare another stream.",
        )
    asked = AskedStream(stream_name(name), _new(changes), columns=more, exact=False)
    if more:
        told = [*(one["name"] for one in more.add),
                *(f"{column} {what}" for column, what in more.touched.items())]  # fmt: skip
        changes["columns"] = ([one["name"] for one in known.fields], told)
    if changes and known.state != "active":
        raise Conflict(
            "stream_not_active",
            f"stream {name} is {known.state}, so {', '.join(changes)} can't change; take the "
            "stream out of the file.",
        )
    return Difference("stream", name, False, changes, asked, _loses_events(changes), known.fields)


def _followed(
    name: str, wanted: DeclaredStream, known: KnownStream, more: ColumnChanges
) -> Configuration:
    """Return the settings of a stream after changes of its columns, before others. Raises
    InvalidInput if a setting can't follow them; an event time need not, if another is declared."""
    types = {one["name"]: one["type"] for one in known.fields}
    try:
        return followed(name, known.configuration, more, types, new_time=False)
    except InvalidInput:
        if wanted.configuration.event_time in (None, known.configuration.event_time):
            raise
        return followed(name, known.configuration, more, types, new_time=True)


def _is_less(new: object, old: object) -> bool:
    """Return whether a limit is less than before; None: there is none."""
    return isinstance(new, int) and (not isinstance(old, int) or new < old)


def _loses_events(changes: Changes) -> list[str]:
    """Return why new settings of retention may truncate events that the old ones keep."""
    loses = []
    for name, (old, new) in changes.items():
        if name.startswith("retain_max_") and _is_less(new, old):
            loses.append(f"{name} truncates events that were kept")
        if name.startswith("retain_min_") and (old is None or new is None or _is_less(new, old)):
            loses.append(f"{name} keeps less than before")
        if name == "retention" and new == "consumed":
            loses.append("retention truncates events that all subscribers have released")
        if name == "retention" and old == "consumed" and new != "keep":
            loses.append("subscribers no longer hold events back")
    return loses


def _store(name: str, wanted: AskedStore, known: AdjunctStore | None) -> Difference:
    whole = wanted.whole
    settings = whole.by_name
    if known is None:
        usual = asdict(AdjunctConfiguration())
        given = {k: v for k, v in settings.items() if v and v != usual.get(k)}
        shown: Changes = {k: (None, v) for k, v in given.items()}
        return Difference("adjunct store", name, True, shown, wanted)
    changes = _changes(known.by_name, settings)
    if "stream" in changes:
        raise bound_to_another(known, whole.stream)
    asked = AskedStore(name, _new(changes))
    return Difference("adjunct store", name, False, changes, asked, _loses_changes(changes, known))


def _loses_changes(changes: Changes, known: AdjunctStore) -> list[str]:
    """Return what new settings of a store may lose of what it has or would have."""
    loses = []
    for name, words in {"history": "changes", "keep_versions": "versions"}.items():
        old, new = changes.get(name, (None, None))
        if old is not None and (new is None or _is_less(new, old)):
            loses.append(f"{name} keeps {words} for a shorter time")
    if {"key", "key_type"} & set(changes):
        loses.append("its keys are made anew, of what the stream still has")
    elif known.configuration.history is not None and {
        one.name for one in fields(AdjunctDefinition)
    } & set(changes):
        loses.append("a changed definition begins a new history")
    if changes.get("on_gap") == ("fail", "rebuild"):
        loses.append("it is rebuilt without events that were truncated before it read them")
    return [*loses, *_loses_protection(changes)]


def _loses_protection(changes: Changes) -> list[str]:
    before, after = changes.get("time_out", (None, None))
    if _is_less(after, before):
        return ["retention waits for it no longer than its time-out"]
    return []


def _group(name: str, wanted: AskedGroup, known: KnownGroup | None) -> Difference:
    own = {"streams": wanted.reads, "pins": [str(pin) for pin in wanted.pins or ()]}
    settings = {**wanted.settings, **own}
    if known is None:
        given = {**{k: v for k, v in settings.items() if v}, "start": wanted.start}
        given |= {"end": wanted.end} if wanted.end else {}
        shown: Changes = {k: (None, v) for k, v in given.items()}
        return Difference("reader group", name, True, shown, wanted)
    old = {**asdict(known.configuration), "streams": list(known.streams),
           "pins": [str(pin) for pin in known.pins]}  # fmt: skip
    changes, loses = _changes(old, settings), []
    if "streams" in changes and (gone := {*known.streams} - {*own["streams"]}):
        loses.append(f"its position in {', '.join(sorted(gone))} is forgotten")
    if changes.get("subscriber") == (True, False):
        loses.append("retention no longer keeps what it has not read")
    if changes.get("on_gap") == ("fail", "skip"):
        loses.append("it skips events that were truncated before it read them")
    loses += _loses_protection(changes)
    asked = replace(
        wanted, new=False, settings={k: v for k, v in _new(changes).items() if k not in own},
        streams=wanted.streams if "streams" in changes else None,
        pins=wanted.pins if "pins" in changes else None,
    )  # fmt: skip
    return Difference("reader group", name, False, changes, asked, loses)
