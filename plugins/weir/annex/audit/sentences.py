"""Say a counter-example in one sentence."""
# ruff: noqa: E501 - a sentence is one line

from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

_OFFSETS = "offsets {a:,} to {b:,} of segment {segment}"
SENTENCES = {
    # Streams.
    "commit_missing": f"no commit of stream {{stream}} has {_OFFSETS}, which lie between its head and its tail",
    "commit_twice": f"two commits of stream {{stream}} have {_OFFSETS}",
    "commit_beyond_tail": f"commits of stream {{stream}} have {_OFFSETS}, which lie beyond its tail",
    "commit_not_whole": "append {name} of stream {stream} says that it has {b:,} events, and its entries have {a:,}",
    "commit_unknown": "entries of append {name} of stream {stream} have {a:,} events under a clock at which it is not committed",
    "clock_not_later": "the commit at offset {a:,} of segment {segment} of stream {stream} has the clock {b}, which is not later than the one before it, or later than the stream",
    "file_missing": f"no file of stream {{stream}} has {_OFFSETS}, which lie between its head and its tail",
    "file_twice": f"two files of stream {{stream}} have {_OFFSETS}",
    "file_beyond_tail": f"files of stream {{stream}} have {_OFFSETS}, which lie beyond its tail",
    "file_below_head": f"a file of stream {{stream}} with {_OFFSETS} lies wholly below the head, and no truncation took it",
    "keys_without_segment": "the active segments of stream {stream} do not cover all keys once: look at segment {segment} and what is before it, at {name}",
    "stream_kept": "stream {stream} counts as deleted, so nothing of it is audited, and {a:,} of its segments are there",
    "proven_beyond": "the audits of stream {stream} count as done up to the clock {a}, which is later than its last one, {b}",
    # Receipts.
    "receipt_missing": f"{_OFFSETS} of stream {{stream}} are below the head, and no receipt has them",
    "receipt_twice": f"two receipts of stream {{stream}} have {_OFFSETS}",
    "receipt_of_what_is_kept": f"a receipt of stream {{stream}} has {_OFFSETS}, which are not below its head",
    "receipt_sum": "receipt {name} of stream {stream} says that {b:,} events went, and its offsets are {a:,}",
    "receipt_lost": "stream {stream} has no receipt {a:,}, and has receipt {name}",
    "receipt_total": "receipt {name} of stream {stream} says that {a:,} events had gone by then, and those before it come to {b:,}",
    # Reader groups.
    "delivered_twice": f"reader group {{reader_group}} was given an event among {_OFFSETS} of stream {{stream}} twice, and was not reset between",
    "delivered_sum": f"batches of reader group {{reader_group}} came to fewer events than {_OFFSETS} of stream {{stream}}",
    "not_delivered": f"reader group {{reader_group}} is past {_OFFSETS} of stream {{stream}}, and no batch has read them",
    "position_beyond_tail": f"reader group {{reader_group}} is past {_OFFSETS} of stream {{stream}}, which do not exist",
    "delivered_before_start": f"reader group {{reader_group}} was given {_OFFSETS} of stream {{stream}}, which lie before the place where it was put",
    "delivered_beyond_position": f"reader group {{reader_group}} was given {_OFFSETS} of stream {{stream}}, and its position lies before them without a reset",
    "skipped_what_was_kept": f"reader group {{reader_group}} skipped {_OFFSETS} of stream {{stream}}, which are not truncated",
    "lost_without_a_word": "reader group {reader_group} lost {b:,} unread events of stream {stream} by truncation {name}, and its receipt says that it lost none",
    "lost_differs": "receipt {name} of stream {stream} says that reader group {reader_group} lost {a:,} events, and what it had not read of them comes to {b:,}, or the receipt says so twice and not the same",
    "lost_so_far": "receipt {name} of stream {stream} says that subscriber {reader_group} had lost {a:,} events by then, and the receipts come to {b:,}",
    "subscriber_not_named": "receipt {name} of stream {stream} does not name {reader_group}, which was a subscriber then",
    "receipt_of_stranger": "receipt {name} of stream {stream} names {reader_group} as a group that it was not then",
    "released_moved_back": f"subscriber {{reader_group}} had released {_OFFSETS} of stream {{stream}} when truncation {{name}} took them, and now has not",
    "keys_without_position": "reader group {reader_group} has no position at some keys of stream {stream}: look at segment {segment} and what is before it, at {name}",
    "no_position": "reader group {reader_group} has no position in stream {stream}",
    "completed_before_end": "reader group {reader_group} counts as done with segment {segment} of stream {stream} at offset {a:,}, and the stream goes on, or the segment ends at {b:,}",
    "waits_for_nothing": "reader group {reader_group} waits with segment {segment} of stream {stream} for older ones, and has none to read",
    "waits_for_nobody": "reader group {reader_group} reads segment {segment} of stream {stream} before older ones of the same keys",
    "position_before_start": f"reader group {{reader_group}} left, or is, before {_OFFSETS} of stream {{stream}}, behind which it was put",
    "placement_differs": "placement {a:,} of reader group {reader_group} in stream {stream} has another order, name, cause or beginning than it can have",
    "checkpoint_moved": "checkpoint {name} of reader group {reader_group} in stream {stream} is not where its group was: look at segment {segment} and offset {a:,}",
    "placement_missing": "it is not recorded where reader group {reader_group} was put in stream {stream}",
    "store_position": "adjunct store {reader_group} is not where its newest version {name} ends in stream {stream}",
    # Batches.
    "batch_not_delivered": f"batch {{name}} of reader group {{reader_group}} read {_OFFSETS} of stream {{stream}}, and its group was not given them",
    "batch_gone": f"batch {{name}} of reader group {{reader_group}} is gone, which read the first or the last of {_OFFSETS} of stream {{stream}}, and batches of that time are kept",
    "batches_overlap": f"batches of reader group {{reader_group}} read an event among {_OFFSETS} of stream {{stream}} twice",
    "batch_missing": f"no batch of reader group {{reader_group}} is left that read all of {_OFFSETS} of stream {{stream}}, though later or earlier ones are",
    "batch_input_differs": "the bounds of the batches of reader group {reader_group} are {b:,} ranges, and the ranges by which they are found are {a:,} or others",
    "output_twice": "batch {a:,} of reader group {reader_group} has {b:,} folders of output {name} that count",
    "output_missing": "batch {a:,} of reader group {reader_group} wrote {name}, which does not count",
    "output_unknown": "{name} counts as written by batch {a:,} of reader group {reader_group}, which does not name it",
    "output_number": "output {name} of reader group {reader_group} has folders numbered {a:,} to {b:,}, and not one of each",
    "append_missing": "batch {a:,} of reader group {reader_group} appended as append {name} of stream {stream}, which is not committed",
    "append_unknown": "append {name} of stream {stream} is of batch {a:,} of reader group {reader_group}, which does not name it or is not committed",
    # Erasures.
    "hole_sum": "the holes of stream {stream} from offset {a:,} of segment {segment} on are said to be {b:,}, and are not",
    "hole_not_declared": "file {name} of stream {stream} says that {b:,} of its offsets have no row, and holes are declared at {a:,}",
    "hole_elsewhere": "file {name} of stream {stream} and the holes that are declared in it differ at offset {a:,}",
    "hole_without_erasure": "stream {stream} has {a:,} holes in segment {segment}, and its erasures come to {b:,}",
    "certificate_not_signed": "the certificate of {name}, about stream {stream}, is not signed with the installation's key, or was changed",
    "certificate_differs": "the certificate of {name}, about stream {stream}, says that {a:,} events were erased, and its erasures are {b:,} or others",
    "certificate_lost": "erasure {a:,} of stream {stream} was asked for by {name}, and there is no such request with a certificate",
    # Files.
    "garbage_is_needed": "{name} counts as garbage, and {stream} needs it",
    "file_absent": "file {name} of stream {stream} is in the ledger, and not in the warehouse",
    "file_size": "file {name} of stream {stream} has {a:,} bytes, and the ledger says {b:,}",
    "file_rows": "file {name} of stream {stream} has {a:,} rows, and the ledger says {b:,}",
}  # fmt: skip


class Found(NamedTuple):
    """What a statement of the audit found: a kind, where it is, two numbers and a name."""

    kind: str
    stream: str | None
    reader_group: str | None = None
    segment: int | None = None
    a: int | Decimal | None = None
    b: int | Decimal | None = None
    name: str | None = None


@dataclass(frozen=True)
class CounterExample:
    """What is not as it must be: its kind, where it is, and a sentence."""

    kind: str
    stream: str | None
    reader_group: str | None
    what: str

    @classmethod
    def of(cls, found: Found) -> "CounterExample":
        """Return that of what was found."""
        at = found.segment
        said = SENTENCES[found.kind].format(
            stream=found.stream, reader_group=found.reader_group, name=found.name,
            segment=None if at is None else f"{at & 0xFFFFFFFF}.{at >> 32}",
            a=int(found.a or 0), b=int(found.b or 0),
        )  # fmt: skip
        return cls(found.kind, found.stream, found.reader_group, said)
