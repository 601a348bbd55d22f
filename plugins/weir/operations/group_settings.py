"""The settings of reader groups, as the forms have them that create and change one."""

from weir.model.amounts import AGE_PATTERN, NONE
from weir.model.group_configuration import ON_GAP, RELEASE
from weir.operations.entries import Keywords
from weir.operations.form import AGES, LONGEST_CUT
from weir.operations.setting import Setting

MOST_STREAMS = 1_000
WRITTEN: Keywords = {"minLength": 1, "maxLength": LONGEST_CUT}


def time_out(description: str) -> Setting:
    """Return the setting of how long retention waits for whoever has not released events."""
    return Setting(
        "Retention", "Time-out", description, "", "for ever", NONE, {"pattern": AGE_PATTERN}, AGES
    )


# The settings of `GroupConfiguration`, for both forms.
SETTINGS: dict[str, Setting] = {
    "subscriber": Setting(
        "Retention",
        "Subscriber",
        "Whether retention keeps events until this group has released them, or until a maximum "
        "truncates them. If a stream's retention is not consumed, its subscribers decide nothing.",
        True,
    ),
    "on_gap": Setting(
        "Reading",
        "When events were truncated before it read them",
        "fail: stop with an error; skip: count the events and continue at the head.",
        "fail", schema={"enum": list(ON_GAP)},
    ),
    "release": Setting(
        "Retention",
        "Release",
        "automatic: each checkpoint lets retention truncate the events before it; manual: only a "
        "release by hand does.",
        "automatic", schema={"enum": list(RELEASE)},
    ),
    "time_out": time_out(
        "How long a subscriber with unread events may be inactive before retention stops waiting "
        "for it, such as 7 d."
    ),
    "max_outstanding": Setting(
        "Reading",
        "Waiting checkpoints", "How many may wait for batches at the same time.",
        3, schema={"minimum": 1, "maximum": 10_000},
    ),
    "aligned": Setting(
        "Reading",
        "Aligned batches",
        "Each batch holds, of all streams, everything up to one moment and nothing after it; "
        "one reader reads at a time.",
        False,
    ),
    "max_ahead": Setting(
        "Reading",
        "Maximum lead of a reader",
        "No batch goes further than this beyond the oldest event that other readers have not read, "
        "such as 1 h.",
        "", "no limit", NONE, {"pattern": AGE_PATTERN}, AGES,
    ),
    "owner": Setting(
        "More",
        "Owner",
        "The role of the database whose members read with it and change it, such as team_shop "
        "(the section Teams of docs/operations.md).",
        if_empty="nobody, so that everybody does", removed_by=NONE, schema={"maxLength": 63},
    ),
    "subject": Setting(
        "More",
        "Subject",
        "The column of the streams, files and tables that its consumers write which has the "
        "routing keys of the events that they read, such as customer: by it copies are found.",
        if_empty="the column of the same name", schema={"maxLength": 300},
    ),
}  # fmt: skip
