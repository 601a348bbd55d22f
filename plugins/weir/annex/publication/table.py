"""Write the next snapshot of an Iceberg table: a manifest of what is new, the manifests that lost
files, the list of all manifests, and the metadata that names it. Nothing points to them yet.

pyiceberg's own appends read or copy what is there and commit to a catalog of theirs. Its manifest
writers and its model of the metadata do neither, so these are used (decision 88).
"""

import json
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NotRequired, TypedDict

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.avro.codecs import AvroCompressionCodec
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
    read_manifest_list,
    write_manifest_list,
)
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table.metadata import TableMetadataV2
from pyiceberg.typedef import Record

from weir.annex.publication.columns import Ids, Json, columns_of
from weir.annex.publication.place import Files, Place
from weir.annex.publication.plan import Plan
from weir.annex.publication.records import Written
from weir.model.schema import CLOCK, CLOCK_BY_NUMBER, SEQ, new_field
from weir.queries.annex.publication.plan import File
from weir.warehouse.filesystem import make_folder
from weir.warehouse.paths import publication_folder, table_folder

MAPPING = "schema.name-mapping.default"
# What keeps other engines from deleting or moving what is Weir's, as far as they ask.
PROPERTIES = {
    "gc.enabled": "false",
    "commit.manifest-merge.enabled": "false",
    "write.delete.mode": "merge-on-read",
    "write.update.mode": "merge-on-read",
    "write.merge.mode": "merge-on-read",
    "write.metadata.delete-after-commit.enabled": "false",
    "write.parquet.compression-codec": "zstd",
}
# The metadata of a table in the JSON of Iceberg's specification, as far as Weir reads it again.
Columns = TypedDict("Columns", {"type": str, "schema-id": int, "fields": list[Json]})
Snapshot = TypedDict("Snapshot", {
    "snapshot-id": int, "sequence-number": int, "timestamp-ms": int, "manifest-list": str,
    "schema-id": int, "summary": dict[str, str], "parent-snapshot-id": NotRequired[int],
})  # fmt: skip
Logged = TypedDict("Logged", {"snapshot-id": int, "timestamp-ms": int})
Metadata = TypedDict("Metadata", {
    "format-version": int, "table-uuid": str, "location": str, "last-sequence-number": int,
    "last-updated-ms": int, "last-column-id": int, "current-schema-id": int,
    "schemas": list[Columns], "default-spec-id": int, "last-partition-id": int,
    "partition-specs": list[Json], "default-sort-order-id": int, "sort-orders": list[Json],
    "properties": dict[str, str], "snapshots": list[Snapshot], "snapshot-log": list[Logged],
    "metadata-log": list[Json], "refs": dict[str, Json], "current-snapshot-id": NotRequired[int],
})  # fmt: skip
MOST_SNAPSHOTS = 100
# So many manifests of fewer files than these become one, of about so many at most: a list has few
# manifests, and no publication writes more than that again.
MERGED, SMALL, LARGE = 32, 1_000, 8_000
_PATH, _POSITION = 2147483546, 2147483545  # ids of the columns of position deletes
_CODEC: AvroCompressionCodec = "deflate"


class _DeletesWriter(ManifestWriterV2):
    """Writes a manifest of position deletes, which pyiceberg reads and does not write."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


@dataclass
class _Snapshot:
    """A snapshot that is being written."""

    place: Place
    folder: str
    number: int
    id: int
    schema: Schema
    manifests: list[ManifestFile] = field(default_factory=list)
    moved: dict[str, str] = field(default_factory=dict)
    new: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    rows_removed: int = 0

    def manifest(
        self, entries: Iterable[ManifestEntry], kind: type[ManifestWriterV2] = ManifestWriterV2
    ) -> str:
        """Write a manifest, and return its path."""
        path = f"{self.folder}m{len(self.new)}.avro"
        output = self.place.file(path)
        with kind(UNPARTITIONED_PARTITION_SPEC, self.schema, output, self.id, _CODEC) as writer:
            for entry in entries:
                writer.add_entry(entry)
        self.manifests.append(writer.to_manifest_file())
        self.new.append(path)
        return path

    def entry(self, status: ManifestEntryStatus, of: ManifestEntry) -> ManifestEntry:
        """Return an entry of an older manifest for a new one."""
        return ManifestEntry.from_args(
            status=status, sequence_number=of.sequence_number,
            file_sequence_number=of.file_sequence_number, data_file=of.data_file,
            snapshot_id=self.id if status == ManifestEntryStatus.DELETED else of.snapshot_id,
        )  # fmt: skip

    def added(self, file: DataFile) -> ManifestEntry:
        """Return the entry of a file that is new."""
        return ManifestEntry.from_args(
            status=ManifestEntryStatus.ADDED, snapshot_id=self.id, sequence_number=None,
            file_sequence_number=None, data_file=file,
        )  # fmt: skip


def write(place: Place, stream_id: int, number: int, plan: Plan, keep: float) -> Written:
    """Write the next state of the table of a stream, in a folder of its own. `keep`: for so many
    seconds a snapshot is kept. Raises InvalidInput for a column that the table can't have."""
    files, folder = Files(place), publication_folder(stream_id, number)
    if plan.state.metadata is None:
        table: Metadata = _new_table(f"{place.root}/{table_folder(stream_id).rstrip('/')}")
    else:
        with place.system.open_input_stream(f"{place.base}/{plan.state.metadata}") as source:
            table = json.loads(source.read())
    make_folder(place.system, f"{place.base}/{folder}")
    if table["current-schema-id"] != plan.state.schema_version:
        _set_columns(table, plan)
    now = max(int(time.time() * 1000), table["last-updated-ms"])
    metadata = f"{folder}{number:05}.metadata.json"
    only, snapshot, count = [metadata], None, plan.state.files
    if plan.makes_snapshot:
        schema = Schema.model_validate(_schema_of(table))
        snapshot = _Snapshot(place, folder, number, uuid.uuid4().int >> 66, schema)
        manifest = _write_manifests(files, snapshot, table, plan)
        count += len(plan.added) - sum(map(len, plan.removed.values()))
        only.append(_add_snapshot(snapshot, table, plan, count, now))
    expires = _expire(table, plan, now - int(keep * 1000))
    table["last-updated-ms"] = now
    ToOutputFile.table_metadata(TableMetadataV2.model_validate(table), place.file(metadata))
    if snapshot is None:
        sequence = table["last-sequence-number"]
        return Written(sequence, metadata, count, None, {}, [], only, [], expires)
    return Written(
        table["last-sequence-number"], metadata, count, manifest, snapshot.moved, snapshot.new,
        only, snapshot.ended, expires,
    )  # fmt: skip


def _new_table(location: str) -> Metadata:
    return {
        "format-version": 2, "table-uuid": str(uuid.uuid4()), "location": location,
        "last-sequence-number": 0, "last-updated-ms": 0, "last-column-id": 0,
        "current-schema-id": -1, "schemas": [], "default-spec-id": 0, "last-partition-id": 999,
        "partition-specs": [{"spec-id": 0, "fields": []}], "default-sort-order-id": 0,
        "sort-orders": [{"order-id": 0, "fields": []}], "properties": dict(PROPERTIES),
        "snapshots": [], "snapshot-log": [], "metadata-log": [], "refs": {},
    }  # fmt: skip


def _set_columns(table: Metadata, plan: Plan) -> None:
    """Let the columns be those of the stream. The id of the schema is the stream's version."""
    ids = Ids()
    own = [new_field(name, "long") for name in (SEQ, CLOCK, CLOCK_BY_NUMBER)]
    for fields in (own, *plan.versions):
        ids.learn(fields)
    columns = columns_of(plan.versions[-1])
    table["schemas"].append(
        {"type": "struct", "schema-id": plan.state.schema_version, "fields": columns}
    )  # fmt: skip
    table["current-schema-id"], table["last-column-id"] = plan.state.schema_version, ids.last
    table["properties"][MAPPING] = json.dumps(ids.mapping)


def _schema_of(table: Metadata) -> Columns:
    current = table["current-schema-id"]
    return next(one for one in table["schemas"] if one["schema-id"] == current)


def _current(table: Metadata) -> Snapshot | None:
    current = table.get("current-snapshot-id")
    return next((one for one in table["snapshots"] if one["snapshot-id"] == current), None)


def _write_manifests(files: Files, snapshot: _Snapshot, table: Metadata, plan: Plan) -> str | None:
    """Write the manifests that the newest snapshot lacks, and take over the others. Returns the one
    that lists the new files of the stream."""
    before = _current(table)
    listed = read_manifest_list(files.new_input(before["manifest-list"])) if before else ()
    masks_stay = plan.masked == plan.state.published_masked
    kept: list[ManifestFile] = []
    for one in listed:
        path = files.path(one.manifest_path)
        if one.content == ManifestContent.DELETES:
            stays = masks_stay
        elif path in plan.removed:
            _take_away(files, snapshot, one, {*plan.removed[path]})
            continue
        else:
            stays = _files_in(one) > 0
        if stays:
            kept.append(one)
        else:
            snapshot.ended.append(path)
            if one.content == ManifestContent.DELETES:
                snapshot.ended += [
                    files.path(entry.data_file.file_path)
                    for entry in one.fetch_manifest_entry(files)
                ]
    _merge(files, snapshot, kept)
    manifest = None
    if plan.added:
        manifest = snapshot.manifest(
            snapshot.added(_data_file(snapshot.place, file)) for file in plan.added
        )
    if plan.masked and not masks_stay:
        deletes = snapshot.added(_mask(snapshot, plan.masked))
        snapshot.manifest([deletes], _DeletesWriter)
    return manifest


def _files_in(manifest: ManifestFile) -> int:
    return (manifest.added_files_count or 0) + (manifest.existing_files_count or 0)


def _take_away(
    files: Files, snapshot: _Snapshot, manifest: ManifestFile, removed: set[str]
) -> None:
    """Write a manifest again, without some of its files."""
    entries = []
    for one in manifest.fetch_manifest_entry(files):
        gone = files.path(one.data_file.file_path) in removed
        snapshot.rows_removed += one.data_file.record_count if gone else 0
        status = ManifestEntryStatus.DELETED if gone else ManifestEntryStatus.EXISTING
        entries.append(snapshot.entry(status, one))
    old = files.path(manifest.manifest_path)
    snapshot.moved[old] = snapshot.manifest(entries)
    snapshot.ended.append(old)


def _merge(files: Files, snapshot: _Snapshot, kept: Sequence[ManifestFile]) -> None:
    """Take over manifests; if many of them are small, put these together."""
    small: list[ManifestFile] = []
    total = 0
    for one in kept:
        count = _files_in(one)
        if one.content == ManifestContent.DATA and count < SMALL and total + count <= LARGE:
            small.append(one)
            total += count
    if len(small) < MERGED:
        snapshot.manifests += kept
        return
    snapshot.manifests += [one for one in kept if one not in small]
    existing = ManifestEntryStatus.EXISTING
    merged = snapshot.manifest(
        snapshot.entry(existing, entry)
        for one in small
        for entry in one.fetch_manifest_entry(files)
    )
    for one in small:
        old = files.path(one.manifest_path)
        snapshot.moved[old] = merged
        snapshot.ended.append(old)


def _data_file(place: Place, file: File) -> DataFile:
    return DataFile.from_args(
        content=DataFileContent.DATA, file_path=f"{place.root}/{file.path}",
        file_format=FileFormat.PARQUET, partition=Record(), record_count=file.events,
        file_size_in_bytes=file.bytes,
    )  # fmt: skip


def _mask(snapshot: _Snapshot, masked: dict[str, int]) -> DataFile:
    """Write which rows of files that straddle the head are left out: those below it."""
    place, path = snapshot.place, f"{snapshot.folder}deletes.parquet"
    names = sorted(f"{place.root}/{name}" for name in masked)
    counts = {f"{place.root}/{name}": rows for name, rows in masked.items()}
    table = pa.table(
        {
            "file_path": pa.concat_arrays([pa.repeat(name, counts[name]) for name in names]),
            "pos": pa.concat_arrays([pa.array(range(counts[name]), pa.int64()) for name in names]),
        },
        schema=pa.schema([
            pa.field("file_path", pa.string(), False, {"PARQUET:field_id": str(_PATH)}),
            pa.field("pos", pa.int64(), False, {"PARQUET:field_id": str(_POSITION)}),
        ]),
    )  # fmt: skip
    output = place.file(path)
    with output.create() as stream:
        pq.write_table(table, stream, compression="zstd")
    snapshot.new.append(path)
    return DataFile.from_args(
        content=DataFileContent.POSITION_DELETES, file_path=output.location,
        file_format=FileFormat.PARQUET, partition=Record(), record_count=table.num_rows,
        file_size_in_bytes=len(output),
        lower_bounds={_PATH: names[0].encode(), _POSITION: (0).to_bytes(8, "little")},
        upper_bounds={
            _PATH: names[-1].encode(),
            _POSITION: (max(counts.values()) - 1).to_bytes(8, "little"),
        },
    )  # fmt: skip


def _add_snapshot(snapshot: _Snapshot, table: Metadata, plan: Plan, count: int, now: int) -> str:
    """Write the list of the manifests, and make the snapshot the newest one of the table. Returns
    the path of the list."""
    path = f"{snapshot.folder}snap.avro"
    output, parent = snapshot.place.file(path), table.get("current-snapshot-id")
    table["last-sequence-number"] += 1
    with write_manifest_list(
        2, output, snapshot.id, parent, table["last-sequence-number"], _CODEC
    ) as writer:
        writer.add_manifests(snapshot.manifests)
    made: Snapshot = {
        "snapshot-id": snapshot.id, "sequence-number": table["last-sequence-number"],
        "timestamp-ms": now, "manifest-list": output.location,
        "schema-id": plan.state.schema_version, "summary": _summary(snapshot, plan, count),
    }  # fmt: skip
    if parent is not None:
        made["parent-snapshot-id"] = parent
    table["snapshots"].append(made)
    table["snapshot-log"].append({"snapshot-id": snapshot.id, "timestamp-ms": now})
    table["current-snapshot-id"] = snapshot.id
    table["refs"] = {"main": {"snapshot-id": snapshot.id, "type": "branch"}}
    return path


def _summary(snapshot: _Snapshot, plan: Plan, count: int) -> dict[str, str]:
    """Say what a snapshot changes, in the words of Iceberg, and which cut of the stream it is."""
    added, removed = sum(f.events for f in plan.added), snapshot.rows_removed
    if removed and added == removed and not plan.truncates:
        operation = "replace"
    elif removed or plan.masked != plan.state.published_masked:
        operation = "overwrite" if added else "delete"
    else:
        operation = "append"
    masked = sum(plan.masked.values())
    counts = {
        "added-data-files": len(plan.added), "added-records": added,
        "deleted-data-files": sum(map(len, plan.removed.values())), "deleted-records": removed,
        "total-data-files": count, "total-delete-files": int(masked > 0),
        "total-position-deletes": masked, "total-records": plan.state.rows + masked,
        "weir.clock": plan.state.clock, "weir.publication": snapshot.number,
    }  # fmt: skip
    return {
        "operation": operation, **{name: str(value) for name, value in counts.items()},
        "weir.cut": json.dumps(plan.state.cut),
    }  # fmt: skip


def _expire(table: Metadata, plan: Plan, oldest: int) -> int:
    """Leave out snapshots that are too old, too many, or that name files which are to be deleted.
    Returns the sequence number of the oldest one that is left."""
    below = table["last-sequence-number"] if plan.truncates else plan.expires
    current = table["current-snapshot-id"]
    kept = [
        one for one in table["snapshots"][-MOST_SNAPSHOTS:]
        if one["snapshot-id"] == current
        or (one["sequence-number"] >= below and one["timestamp-ms"] >= oldest)
    ]  # fmt: skip
    ids = {one["snapshot-id"] for one in kept}
    used = {one["schema-id"] for one in kept} | {table["current-schema-id"]}
    table["snapshots"] = kept
    table["snapshot-log"] = [one for one in table["snapshot-log"] if one["snapshot-id"] in ids]
    table["schemas"] = [one for one in table["schemas"] if one["schema-id"] in used]
    return int(kept[0]["sequence-number"])
