"""What an action would lose is measured, and done only if it is still what was approved."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

import weir
from tests.raises import raises
from tests.world.streams import unique
from weir.database.connection import Database
from weir.errors import WeirError
from weir.operations.action import Job
from weir.operations.approval import Loss
from weir.operations.form import parse
from weir.operations.jobs import ACTIONS, FORMS
from weir.operations.runner import by_hand
from weir.programs.store import StreamStore
from weir.reader_groups.groups.lag import read_lag
from weir.settings import Settings


class Asked:
    """A person who is asked about an action, and the action."""

    def __init__(self, database: Database, settings: Settings, action: str, **given: Any) -> None:
        self.action, self.given = action, given
        self.job = Job(action, by_hand(action), settings, database)

    def measured(self) -> Loss | None:
        measure = ACTIONS[self.action].measure
        assert measure is not None
        return measure(self.job, parse(FORMS[self.action], self.given))

    def loss(self) -> Loss:
        """What the person is shown."""
        found = self.measured()
        assert found is not None
        return found

    def does(self, loss: Loss) -> Mapping[str, Any]:
        """What is done once it is approved."""
        form = parse(FORMS[self.action], self.given | loss.arguments)
        done: Mapping[str, Any] = ACTIONS[self.action].run(
            replace(self.job, approved=loss.facts), form
        )
        return done


Ask = Callable[..., Asked]


@pytest.fixture
def ask(database: Database, settings: Settings) -> Ask:
    """Return `ask(action, **given)`."""
    return partial(Asked, database, settings)


@pytest.fixture
def store(settings: Settings) -> Any:
    with weir.open(settings=settings) as opened:
        yield opened


@pytest.fixture
def stream(store: StreamStore) -> str:
    """Return a stream of three events, of which the group of its name has read none."""
    name = unique("lossy")
    store.create_stream(f"test/{name}", "n")
    store.append(f"test/{name}", [{"n": 1}, {"n": 2}, {"n": 3}])
    store.create_reader_group(name, [f"test/{name}"])
    return f"test/{name}"


def read(store: StreamStore, stream: str, outputs: bool = False) -> None:
    group = stream.partition("/")[2]
    for batch in store.reader(group):
        batch.commit({f"parquet:{group}": batch.events} if outputs else {})


def test_a_truncation_is_of_what_was_approved_though_events_came_meanwhile(
    store: StreamStore, stream: str, ask: Ask
) -> None:
    asked = ask("truncate_stream", stream=stream, cut="tail", dry_run=False)
    loss = asked.loss()
    group = stream.partition("/")[2]
    assert loss.facts["events"] == 3
    assert f"subscriber {group} would lose 3 events that it has not read" in loss.lines
    assert store.count(stream) == 3
    store.append(stream, [{"n": 4}])
    done = asked.does(loss)
    assert (done["events"], store.count(stream)) == (3, 1)
    assert asked.does(loss) == done, "a try after one that was killed"


def test_an_approval_is_void_once_the_world_has_moved(
    store: StreamStore, stream: str, ask: Ask
) -> None:
    asked = ask("truncate_stream", stream=stream, cut="tail", dry_run=False)
    loss = asked.loss()
    read(store, stream)
    with raises("approval_void no reader group"):
        asked.does(loss)
    assert store.count(stream) == 3
    asked.does(asked.loss())
    assert store.count(stream) == 0


def test_a_deletion_shows_events_files_and_who_has_not_read_them(
    store: StreamStore, stream: str, ask: Ask
) -> None:
    asked = ask("delete_stream", stream=stream, unread_too=True)
    with raises("stream_not_sealed"):
        asked.loss()
    store.seal_stream(stream)
    loss = asked.loss()
    group = stream.partition("/")[2]
    assert (loss.facts["events"], loss.facts["files"]) == (3, 1)
    assert loss.facts["unread"] == {group: 3}
    read(store, stream)
    with raises("approval_void would delete"):
        asked.does(loss)
    loss = asked.loss()
    done = asked.does(loss)
    assert done == {"stream": stream, "files": 1}
    assert asked.does(loss) == done
    with raises("stream_not_found"):
        store.count(stream)


def test_a_group_is_deleted_if_it_still_is_where_it_was_and_a_dry_run_says_what_goes(
    store: StreamStore, stream: str, ask: Ask
) -> None:
    group = stream.partition("/")[2]
    told = store.delete_reader_group(group, dry_run=True)
    assert told["dry_run"] is True
    assert (told["checkpoints"], told["batches"]) == (0, 0)
    asked = ask("delete_reader_group", reader_group=group)
    loss = asked.loss()
    assert f"would delete reader group {group} with its positions in {stream}" in loss.lines[0]
    assert {**loss.facts, "of": 0} == {key: told.get(key, 0) for key in loss.facts}
    store.append(stream, [{"n": 4}])
    assert asked.loss().facts == loss.facts, "what is appended changes nothing"
    read(store, stream)
    with raises("approval_void would delete"):
        asked.does(loss)
    loss = asked.loss()
    done = asked.does(loss)
    assert asked.does(loss) == done
    with raises("group_not_found"):
        store.delete_reader_group(group, dry_run=True)


def test_an_adjunct_store_is_deleted_as_approved_and_a_dry_run_changes_nothing(
    store: StreamStore, stream: str, ask: Ask
) -> None:
    name = f"{stream}-store"
    store.define_adjunct_store(name, stream)
    assert store.delete_adjunct_store(name, dry_run=True)["stream"] == stream
    asked = ask("delete_adjunct_store", adjunct_store=name)
    loss = asked.loss()
    assert f"would delete adjunct store {name} with 0 versions (0 bytes)" in loss.lines[0]
    done = asked.does(loss)
    assert asked.does(loss) == done
    with raises("adjunct_store_not_found"):
        store.delete_adjunct_store(name)


def test_a_dry_run_of_a_deletion_and_of_a_reset_says_the_loss_and_does_nothing(
    store: StreamStore, stream: str
) -> None:
    group = stream.partition("/")[2]
    read(store, stream)
    told = store.reset_reader_group(group, "start", allow_repeat=True, dry_run=True)
    assert (told["again"], told["dry_run"]) == ({stream: 3}, True)
    store.seal_stream(stream)
    assert store.delete_stream(stream, dry_run=True)["events"] == 3
    assert store.count(stream) == 3
    assert read_lag(store.database, [group])[0].unread_events == 0, "it is where it was"


def test_a_reset_backwards_shows_what_is_read_again_and_which_outputs_get_it_twice(
    store: StreamStore, stream: str, ask: Ask
) -> None:
    group = stream.partition("/")[2]
    given = {"reader_group": group, "to": "start", "allow_repeat": True}
    forward = ask("reset_reader_group", **{**given, "to": "tail"})
    assert forward.measured() is None
    read(store, stream, outputs=True)
    asked = ask("reset_reader_group", **given)
    loss = asked.loss()
    assert loss.facts["again"] == {stream: 3}
    assert f"their results would be in parquet:{group} twice" in loss.lines
    store.append(stream, [{"n": 4}])
    read(store, stream)
    with raises("approval_void 4 events"):
        asked.does(loss)
    loss = asked.loss()
    done = asked.does(loss)
    assert asked.does(loss) == done
    read(store, stream)


def test_declarations_that_lose_data_are_made_if_they_still_lose_the_same(
    store: StreamStore, stream: str, ask: Ask
) -> None:
    store.update_stream(stream, retention="age", retain_max_age="30 d")
    text = "streams: {%s: {routing_key: n, retention: age, retain_max_age: %s}}"
    asked = ask("apply", text=text % (stream, "1 d"), allow_loss=True)
    loss = asked.loss()
    assert "may lose data" in loss.lines[0]
    store.update_stream(stream, retain_max_age="60 d")
    with raises("approval_void 60 d 1 d"):
        asked.does(loss)
    assert asked.does(asked.loss())["changes"][0]["name"] == stream
    keeps = ask("apply", text=text % (stream, "90 d"), allow_loss=True)
    assert keeps.measured() is None


def twice(store: StreamStore, stream: str) -> None:
    """Create a stream with three events, again under the same name, and its group."""
    name = stream.partition("/")[2]
    store.delete_reader_group(name)
    store.seal_stream(stream)
    store.delete_stream(stream)
    store.create_stream(stream, "n")
    store.append(stream, [{"n": 1}, {"n": 2}, {"n": 3}])
    store.create_reader_group(name, [stream])


@pytest.mark.parametrize(
    ("action", "given"),
    [
        ("truncate_stream", {"stream": "{s}", "cut": "tail", "dry_run": False}),
        ("delete_stream", {"stream": "{s}", "unread_too": True}),
        ("delete_reader_group", {"reader_group": "{g}"}),
        ("delete_adjunct_store", {"adjunct_store": "{s}-store"}),
        ("reset_reader_group", {"reader_group": "{g}", "to": "start", "allow_repeat": True}),
        ("apply", {"text": "streams: {{{s}: {{routing_key: n, retention: size, retain_max_bytes: "
                           "1 MB}}}}", "allow_loss": True}),
    ],
)  # fmt: skip
def test_what_is_created_again_under_the_same_name_is_not_what_was_approved(
    store: StreamStore, stream: str, ask: Ask, action: str, given: dict[str, Any]
) -> None:
    group = stream.partition("/")[2]

    def ready() -> None:
        if action == "delete_stream":
            store.seal_stream(stream)
        elif action == "delete_adjunct_store":
            store.define_adjunct_store(f"{stream}-store", stream)
        elif action == "reset_reader_group":
            read(store, stream)

    ready()
    said = {
        name: value.format(s=stream, g=group) if isinstance(value, str) else value
        for name, value in given.items()
    }
    asked = ask(action, **said)
    loss = asked.loss()
    if action == "delete_adjunct_store":
        store.delete_adjunct_store(f"{stream}-store")
    elif action == "delete_stream":
        store.delete_reader_group(group)
        store.delete_stream(stream)
        store.create_stream(stream, "n")
        store.append(stream, [{"n": 1}, {"n": 2}, {"n": 3}])
        store.create_reader_group(group, [stream])
    elif action == "delete_reader_group":
        store.delete_reader_group(group)
        store.create_reader_group(group, [stream])
    else:
        twice(store, stream)
    ready()
    with pytest.raises(WeirError) as refused:  # a cut of the stream before names its segments
        asked.does(loss)
    assert refused.value.code in ("approval_void", "cut_invalid")
    assert store.count(stream) == 3


def test_other_unread_events_in_the_same_number_are_another_loss(
    store: StreamStore, ask: Ask
) -> None:
    name = unique("lossy")
    stream = f"test/{name}"
    store.create_stream(stream, "n", segments=2)
    store.append(stream, [{"n": n} for n in range(40)])
    store.create_reader_group(name, [stream])
    cuts = ["0.0=5, 1.0=0", "0.0=0, 1.0=5"]
    store.reset_reader_group(name, cuts[0], dry_run=False)
    asked = ask("truncate_stream", stream=stream, cut="tail", dry_run=False)
    loss = asked.loss()
    store.reset_reader_group(name, cuts[1], allow_repeat=True)
    again = asked.loss()
    assert again.facts["lost"] == loss.facts["lost"], "the same number of other events"
    with raises("approval_void"):
        asked.does(loss)
    assert asked.does(again)["events"] == 40
