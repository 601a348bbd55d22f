"""The layout of the forms: collapsed sections, and examples.

A field without a section is in the section that is open at first. These are the required fields and
the ones that most people fill in.
"""

_RETENTION = (
    "retention", "retain_min_age", "retain_max_age", "retain_min_bytes",
    "retain_max_bytes", "cuts_every", "retention_every",
)  # fmt: skip
_SUBSCRIBER = ("subscriber", "release", "time_out")

# Per job the titles of its sections, and the fields in them.
SECTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "create_stream": {
        "Columns, and rows that do not fit": (
            "schema",
            "on_new_column",
            "on_missing_key",
            "on_bad_rows",
        ),
        "Retention": _RETENTION,
        "Scaling": (
            "scaling",
            "target_rate",
            "scale_factor",
            "min_segments",
            "max_segments",
            "scale_cooldown",
        ),
        "Tags": ("tags",),
    },
    "update_stream": {
        "Scaling": (
            "scaling",
            "segments",
            "target_rate",
            "scale_factor",
            "max_segments",
            "scale_cooldown",
        ),
        "Columns, and rows that do not fit": (
            "more_columns",
            "on_new_column",
            "on_missing_key",
            "on_bad_rows",
        ),
        "Retention": (*_RETENTION, "allow_loss"),
        "Tags": ("tags",),
    },
    "scale_stream": {"More": ("boundaries", "reason")},
    "back_test": {
        "More": ("scale_factor", "min_segments", "max_segments", "scale_cooldown", "read_files")
    },
    "create_reader_group": {
        "Retention": (*_SUBSCRIBER, "allow_loss"),
        "Order": ("aligned", "max_ahead"),
        "More": ("end", "allow_truncated", "on_gap", "max_outstanding"),
    },
    "update_reader_group": {
        "Retention": (*_SUBSCRIBER, "allow_loss"),
        "Streams": ("streams", "start", "allow_truncated"),
        "Reading": ("on_gap", "pins", "max_outstanding", "aligned", "max_ahead"),
        "More": ("generation",),
    },
    "reset_reader_group": {"Retention": ("allow_loss", "allow_truncated")},
    "fork_reader_group": {"Retention": ("subscriber", "allow_loss")},
    "apply": {"More": ("text", "allow_loss", "allow_truncated")},
    "release_reader_group": {"More": ("generation",)},
    "checkpoint_reader_group": {
        "Wait for open batches": ("barrier", "patience"),
        "More": ("cancel",),
    },
    "define_adjunct_store": {
        "Deletions and functions": ("delete_when", "key_type", "value_columns"),
        "Joins": ("layout", "bootstrap", "missing", "patience"),
        "What is wrong or missing": ("null_key", "on_error", "on_gap"),
        "Retention": ("keep_versions", "history", "time_out"),
    },
    "update_adjunct_store": {
        "Deletions and functions": ("delete_when", "key_type", "value_columns"),
        "Joins": ("layout", "bootstrap", "missing", "patience"),
        "What is wrong or missing": ("null_key", "on_error", "on_gap"),
        "Retention": ("keep_versions", "history", "time_out"),
    },
    "ingest": {
        "Kind of files": ("format", "separator", "null_value", "infer"),
        "How csv files are written": (
            "header",
            "skip_lines",
            "comment",
            "quote",
            "escape",
            "encoding",
        ),
        "How numbers and times are written": (
            "decimal",
            "thousands",
            "date_format",
            "timestamp_format",
            "time_zone",
        ),
        "More": ("allow_repeated_files",),
    },
    "process": {
        "Readers, order and errors": ("readers", "order", "on_error", "retries", "label", "engine"),
        "Size of a batch": ("batch_events", "batch_bytes", "batch_files"),
        "Adjunct stores": ("adjuncts", "manager"),
    },
}

_STARTING_POINTS = ("head", "tail", "time 2026-01-01T00:00:00Z", "0.0=12, 1.0=7")
_AGES = ("12 h", "7 d", "30 d", "none")
_SIZES = ("500 MB", "2 GB", "none")

# What a text field proposes, by its name.
EXAMPLES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        ("retain_min_age", "retain_max_age", "time_out", "last", "max_ahead", "history"), _AGES
    ),
    **dict.fromkeys(("retain_min_bytes", "retain_max_bytes", "batch_bytes"), _SIZES),
    **dict.fromkeys(("cuts_every", "retention_every"), ("30 min", "1 h", "1 d", "none")),
    "start": _STARTING_POINTS,
    "end": _STARTING_POINTS,
    "to": ("start", "checkpoint NAME", *_STARTING_POINTS),
    "at": ("position", "checkpoint NAME", *_STARTING_POINTS),
    "cut": ("tail", "time 2026-01-01T00:00:00Z", "position", "checkpoint NAME", "0.0=12, 1.0=7"),
    "separator": (",", ";", "|", r"\t"),
    "quote": ('"', "'", "none"),
    "escape": ("\\",),
    "comment": ("#",),
    "encoding": ("utf-8", "windows-1252", "iso-8859-15", "utf-16"),
    "decimal": (".", ","),
    "thousands": (",", ".", "'", " "),
    "date_format": ("dd.MM.yyyy", "MM/dd/yyyy", "yyyyMMdd"),
    "timestamp_format": ("dd.MM.yyyy HH:mm", "MM/dd/yyyy HH:mm:ss", "yyyyMMddHHmmss"),
    "time_zone": ("UTC", "Europe/Berlin", "America/New_York"),
}
# Texts of several lines, which other fields would make one of.
MULTILINE = {("apply", "text")}


def layout(job: str, name: str) -> dict[str, object]:
    """Return the keywords of a field's schema that decide where it is shown and what it
    proposes."""
    found: dict[str, object] = {}
    for title, names in SECTIONS.get(job, {}).items():
        if name in names:
            found["section"] = title
    if name in EXAMPLES:
        found["examples"] = list(EXAMPLES[name])
    if (job, name) in MULTILINE:
        found["format"] = "multiline"
    return found
