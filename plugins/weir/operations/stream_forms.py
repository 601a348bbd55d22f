"""The forms by which streams are created and changed: of jobs, and of entries in declarations."""

from dataclasses import dataclass

from weir.errors import InvalidInput
from weir.front_ends import called
from weir.model.column_changes import ColumnChanges
from weir.model.declared_columns import declared_columns
from weir.model.names import stream_name
from weir.model.scaling_policy import MOST_SEGMENTS
from weir.model.stream_configuration import LONGEST_EXPRESSION, Configuration
from weir.operations.asked import AskedStream
from weir.operations.column_settings import renames, with_defaults
from weir.operations.expressions import columns_of
from weir.operations.form import (
    DEFAULT_PATTERN,
    LONGEST_COLUMNS,
    RENAME_PATTERN,
    argument,
    loss_argument,
    stream_argument,
)
from weir.operations.setting import settings_of, with_settings
from weir.operations.stream_settings import ROWS, SETTINGS


@with_settings(SETTINGS)
@dataclass(frozen=True)
class CreateStream:
    """Create a stream."""

    stream: str = stream_argument(
        "The name of the new stream, as scope/stream: lower-case letters, digits, _ and -.",
        new=True,
    )
    routing_key: str = argument(
        "Routing key",
        "A column such as customer, or a transform such as lower(city) or concat(shop, '-', till), "
        "whose value decides the segment. Events of one key are read in the order in which they "
        "were written.",
        maxLength=LONGEST_EXPRESSION,
    )
    segments: int = argument(
        "Segments",
        "The number of equal ranges of the key space to begin with. Scale the stream to change it.",
        1, minimum=1, maximum=MOST_SEGMENTS,
    )  # fmt: skip
    schema: str = argument(
        "Columns",
        "The columns as SQL, such as: id BIGINT, name STRING. Empty: those of the first append.",
        "", maxLength=LONGEST_COLUMNS,
        section=ROWS,
    )  # fmt: skip

    @property
    def configuration(self) -> Configuration:
        """Its configuration. Raises InvalidInput for a wrong setting."""
        key = Configuration(self.routing_key.strip())
        return key.changed(settings_of(self, Configuration))

    @property
    def asked(self) -> AskedStream:
        """What the stream is to be. Raises InvalidInput for a wrong setting, key or column."""
        name, wanted = stream_name(self.stream, reserved=False), self.configuration
        columns = ColumnChanges(add=columns_of(self.schema, wanted.routing_key) or [])
        return AskedStream(name, wanted.__dict__, self.segments, columns)


@with_settings(SETTINGS, changed=["min_segments"])  # which `segments` sets
@dataclass(frozen=True)
class UpdateStream:
    """Change the configuration of a stream. What is not given, empty or unchanged is not changed;
    `none` removes a limit.
    """

    stream: str = stream_argument()
    segments: int = argument(
        "Segments",
        "fixed: replace all segments by this many of equal range; by rate: never fewer. 0: "
        "unchanged.",
        0, minimum=0, maximum=MOST_SEGMENTS,
        section="Scaling",
    )  # fmt: skip
    complete_until: str = argument(
        "Complete until",
        "Take back what writers have stated: the stream is complete to this earlier event time, "
        "such as 2026-06-01T10:00:00Z, or to none. Hours and days after it that were announced are "
        "announced again once they are complete. Empty: unchanged.",
        "", maxLength=100,
    )  # fmt: skip
    more_columns: str = argument(
        "More columns",
        "Columns to add, as SQL, such as: gate STRING. They are null in existing events. They are "
        "also added to a stream that refuses new columns.",
        "", maxLength=LONGEST_COLUMNS,
        section=ROWS,
    )  # fmt: skip
    defaults: list[str] = argument(
        "Defaults",
        "For columns to add, as column = value: what events have whose append did not have the "
        "column, before and after it is added.",
        [], items={"type": "string", "pattern": DEFAULT_PATTERN, "maxLength": 4_096},
        maxItems=1_000,
        section="Columns that are there",
    )  # fmt: skip
    rename_columns: list[str] = argument(
        "Rename columns",
        "Columns to rename, as old -> new. Two may swap their names. A routing key and "
        "an event time follow.",
        [], items={"type": "string", "pattern": RENAME_PATTERN, "maxLength": 4_096},
        maxItems=1_000,
        section="Columns that are there",
    )  # fmt: skip
    drop_columns: list[str] = argument(
        "Drop columns",
        "Columns to drop. Their values stay in old files, and can be read with an older version of "
        "the schema.",
        [], items={"type": "string", "minLength": 1, "maxLength": 4_096}, maxItems=1_000,
        section="Columns that are there",
    )  # fmt: skip
    widen_columns: str = argument(
        "Widen columns",
        "Columns that get a wider type, as SQL, such as: seats BIGINT, price DECIMAL(20,2).",
        "", maxLength=LONGEST_COLUMNS,
        section="Columns that are there",
    )  # fmt: skip
    allow_named: bool = argument(
        "Allow named",
        "Rename, drop and widen columns even if consumers, their functions or outputs name them, "
        "or may. Without it such a change is refused, and they are listed.",
        False,
        section="Columns that are there",
    )
    allow_loss: bool = loss_argument()
    dry_run: bool = argument(
        "Dry run", "Only say what would change and who names the columns.", False
    )

    @property
    def changes(self) -> dict[str, object]:
        """The settings to change, by their names in `Configuration`. Raises InvalidInput for an
        amount that is too small."""
        fewest = {"min_segments": self.segments} if self.segments else {}
        return settings_of(self, Configuration) | fewest

    @property
    def asked(self) -> AskedStream:
        """What is to change. Raises InvalidInput for a wrong setting or column."""
        if self.defaults and not self.more_columns.strip():
            raise InvalidInput(
                "argument_invalid",
                f"{called('defaults')} names {self.defaults[0]!r}, but no column is added; name "
                f"the columns in {called('more_columns')}.",
            )
        add, widen = (declared_columns(one) if one.strip() else []
                      for one in (self.more_columns, self.widen_columns))  # fmt: skip
        columns = ColumnChanges(
            with_defaults(add, self.defaults), renames(self.rename_columns), self.drop_columns,
            widen,
        )  # fmt: skip
        return AskedStream(
            stream_name(self.stream), self.changes, columns=columns,
            complete_until=self.complete_until.strip(), dry_run=self.dry_run,
        )  # fmt: skip
