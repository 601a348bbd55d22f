"""A consumer: the form of its job, and what of it is declared for its group."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from weir.database.connection import Database
from weir.errors import InvalidInput
from weir.front_ends import do
from weir.model.amounts import SIZE_PATTERN
from weir.model.names import ADJUNCT_STORE_PATTERN, FUNCTION_PATTERN, LABEL_PATTERN
from weir.model.stream_configuration import Configuration
from weir.operations.form import (
    ENGINES,
    OUTPUT_PATTERN,
    SIZES,
    argument,
    default_of,
    parse,
    reader_group_argument,
)
from weir.reader_groups.groups.consumers import declare_consumer, declared_consumer
from weir.settings import Settings

if TYPE_CHECKING:
    from weir.operations.asked import Allowed


@dataclass(frozen=True)
class Process:
    """Call a function with what a reader group has not read yet, exactly once. What is not given
    has the value that was declared for the group's consumer, if any.
    """

    reader_group: str = reader_group_argument()
    function: str = argument(
        "Function",
        "module:function of a configured package (in a terminal, of any package). It takes the "
        "events as a DataFrame or a pyarrow table, and returns the same, or a dictionary with one "
        "for each output. Empty: the declared one.",
        "", pattern=FUNCTION_PATTERN, maxLength=500,
    )  # fmt: skip
    outputs: list[str] = argument(
        "Outputs",
        "Where the result goes: stream:scope/stream, parquet:folder below the output root, or "
        "table:schema.table of Weir's database; then its options, such as places=yes. Empty: the "
        "declared ones.",
        [], items={"type": "string", "pattern": OUTPUT_PATTERN, "maxLength": 4_096}, maxItems=100,
    )  # fmt: skip
    order: str = argument(
        "Order",
        "segment: by offset within each segment; stream: in write order; none: fastest.",
        "segment", enum=["segment", "stream", "none"],
        section="Readers, order and errors",
    )  # fmt: skip
    engine: str = argument(
        "Engine",
        "What computes: spark gives the function DataFrames; pyarrow gives it tables, without a "
        "JVM, and takes pandas and Polars DataFrames, too; auto: spark, or pyarrow where pyspark "
        "is not installed.",
        "auto", enum=list(ENGINES),
        section="Readers, order and errors",
    )  # fmt: skip
    readers: int = argument(
        "Readers",
        "How many tasks share the work. Until all have joined, no task takes more than its share.",
        1, minimum=1, maximum=1000,
        section="Readers, order and errors",
    )  # fmt: skip
    on_error: str = argument(
        "When the function fails on events",
        "stop: leave the batch open; split: divide it until the failing event is alone, and stop "
        "there; quarantine: put that event into <stream>.rejected and continue.",
        "stop", enum=["stop", "split", "quarantine"],
        section="Readers, order and errors",
    )  # fmt: skip
    label: str = argument(
        "Label",
        "A name for this reader, the same in every run; a pin assigns a range of keys to the "
        "readers of one label. Empty: the map index of its task, if it has one.",
        "", pattern=LABEL_PATTERN,
        section="Readers, order and errors",
    )  # fmt: skip
    parameters: dict[str, Any] = argument(
        "Parameters",
        'Further arguments of the function, by their names, such as {"threshold": 10}.',
        {},
    )
    batch_events: int = argument(
        "Events in a batch",
        "The most events that a batch reads; only its first file may exceed it. 0: the setting "
        "batch_events.",
        0, minimum=0, maximum=2**53,
        section="Size of a batch",
    )  # fmt: skip
    batch_bytes: str = argument(
        "Bytes in a batch", "The most bytes of files, such as 500 MB. Empty: the setting.", "",
        pattern=SIZE_PATTERN,
        section="Size of a batch", examples=SIZES,
    )  # fmt: skip
    batch_files: int = argument(
        "Files in a batch",
        "The most files. 0: the setting.",
        0,
        minimum=0,
        maximum=1_000_000,
        section="Size of a batch",
    )
    retries: int = argument(
        "Retries of a batch",
        "How often a run reads a batch again that failed, before it splits, quarantines or stops. "
        "Mistakes in the program are not tried again.",
        0, minimum=0, maximum=100,
        section="Readers, order and errors",
    )  # fmt: skip
    adjuncts: list[str] = argument(
        "Adjunct stores",
        "Stores, as scope/store, that the function gets in its argument adjuncts, each in a "
        "version that is pinned to the batch. A store's own stream is not delivered.",
        [], items={"type": "string", "pattern": ADJUNCT_STORE_PATTERN}, maxItems=100,
        uniqueItems=True, names="adjunct_store",
        section="Adjunct stores",
    )  # fmt: skip
    manager: str = argument(
        "Manager",
        "module:factory of a configured package, which makes the AdjunctStoreManager that decides "
        "what is delivered. Empty: all streams but those of the stores.",
        "", maxLength=500,
        section="Adjunct stores",
    )  # fmt: skip


def changed_settings(form: Process) -> dict[str, object]:
    """Return the arguments that differ from their defaults, without the group. Of a form of
    Airflow, which sends its defaults too, these are the ones that a person has given.
    """
    default = {one.name: default_of(one) for one in fields(form)}
    return {
        name: value
        for name, value in form.__dict__.items()
        if name != "reader_group" and value != default[name]
    }


def with_declared(connection: Connection, given: Mapping[str, object]) -> Process:
    """Return the arguments that are given and not empty, with those declared for the group in place
    of the others. One that is given counts even if it is the default.

    Raises InvalidInput if neither names a function and outputs.
    """
    form = parse(Process, dict(given))
    group = form.reader_group
    filled = {
        name: value
        for name, value in form.__dict__.items()
        if given.get(name) is not None and value not in ("", [], {})
    }
    found = parse(Process, {**declared_consumer(connection, group), **filled})
    if not found.function or not found.outputs:
        raise InvalidInput(
            "argument_missing",
            f"no function and outputs are given, and no consumer is declared for reader group "
            f"{group}; give both, or declare it in a file and {do('apply', file='FILE')}.",
        )
    return found


@dataclass(frozen=True)
class AskedConsumer:
    """What the consumer of a group is to be. `arguments`: those of `weir_process`. `streams`: the
    settings of those that its group reads. `made`: streams that need not exist yet."""

    group: str
    arguments: Mapping[str, object]
    streams: Mapping[str, Configuration]
    made: Collection[str]

    def check(self, database: Database, settings: Settings) -> None:
        """Check its function and its outputs, as its first run would; a module of functions may be
        on another machine only. Raises InvalidInput, or NotFound for a stream or table that does
        not exist."""
        from weir.consumers.outputs import Output, check_named_once
        from weir.consumers.places import check_order_known
        from weir.consumers.user_functions import find_function

        asked = parse(Process, {"reader_group": self.group, **self.arguments})
        for name in filter(None, (asked.function, asked.manager.strip())):
            find_function(name, settings.function_packages, settings.function_path, elsewhere=True)
        outputs = [Output.parse(one, settings.output_roots) for one in asked.outputs]
        check_named_once(outputs)
        # What a manager or a store keeps from being delivered is known when it runs.
        delivered = self.streams if not {"adjuncts", "manager"} & set(self.arguments) else {}
        for one in outputs:
            one.check_not_input(self.group, delivered)
            if one.publication.ordered:
                check_order_known(delivered, asked.order, one)

        def there(connection: Connection) -> None:
            for one in outputs:
                if not (one.kind == "stream" and one.name in self.made):
                    one.check(connection)

        database.transaction(there)

    def bring(
        self, database: Database, _settings: Settings, _allowed: "Allowed", *, request_id: str
    ) -> dict[str, object]:
        """Keep it with its group."""
        declare_consumer(database, self.group, dict(self.arguments), request_id=request_id)
        return {}
