"""Input files: the ones that the paths of an append name, in order, and what identifies them."""

import errno
import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from pyarrow import fs

from weir.controller.transactions import InputFile
from weir.errors import InvalidInput, check_choice
from weir.front_ends import called
from weir.inputs.file_formats import AUTO, FORMATS, TABS, format_of
from weir.inputs.folder_names import is_partition, partitions_of
from weir.kernel.text_options import TextOptions
from weir.model.names import check_text, shortened
from weir.warehouse.filesystem import filesystem
from weir.warehouse.paths import below_root, not_regular

FILE_BITS, ROW_BITS = 16, 47  # of the rank
ROW_MASK = (1 << ROW_BITS) - 1
# In seconds: how far the clocks of a store and of this machine may differ, and a second.
_FRESH = 60
_AT_ONCE = 16  # requests for ETags


@dataclass(frozen=True)
class Inputs:
    """The files to append in the order given, and what identifies them."""

    root: str
    files: tuple[InputFile, ...]
    format: str
    how: TextOptions  # of csv files; the zone and the formats of times hold for json, too
    modified: tuple[str, ...]
    infer: str = "types"  # for csv files of a stream without columns; or "strings"
    prefix: str = ""  # of the recorded paths, for files below a root that is not the first
    folders: tuple[str, ...] = ()  # that were named, below the root
    rename: tuple[tuple[str, str], ...] = ()  # columns: the file's name, the stream's name
    tags: tuple[tuple[str, str], ...] = ()  # path and ETag of those that are just written

    @property
    def named(self) -> list[InputFile]:
        """Return the files under the names by which a transaction records them."""
        return [InputFile(self.prefix + file.path, file.bytes) for file in self.files]

    @property
    def batch_id(self) -> str:
        """Return a hash of the ordered paths below the input root. The same files are the same
        batch."""
        return hashlib.sha256(json.dumps([f.path for f in self.named]).encode()).hexdigest()[:32]

    @property
    def fingerprint(self) -> str:
        """Return a hash of sizes, modification times, and what changes their meaning. Changed files
        are another input, and so are files whose columns are called otherwise."""
        how = {**self.how.changed, **({} if self.infer == "types" else {"infer": self.infer})}
        how |= {"rename": sorted(self.rename)} if self.rename else {}
        seen = [[f.bytes for f in self.files], self.modified, self.format, how]
        return hashlib.sha256(json.dumps(seen, sort_keys=True).encode()).hexdigest()

    @property
    def guesses_types(self) -> bool:
        """Return whether the types of new columns come from the values in the files."""
        return self.format == "json" or (self.format == "csv" and self.infer == "types")

    def origin(self, seq: int) -> tuple[str, int]:
        """Return the file and the row in it of a rank."""
        return self.files[self.file_of(seq)].path, seq & ROW_MASK

    def file_of(self, seq: int) -> int:
        """Return the index of the file of a rank."""
        return seq >> ROW_BITS


# The options that count for files of a format that is no csv; and for csv with tabs all but one.
_COUNTS = {"parquet": (), "json": ("date_format", "timestamp_format", "time_zone")}


def _check_effect(how: TextOptions, infer: str, format_: str) -> None:
    """Raise InvalidInput for an option that changes nothing in files of this format."""
    given = [*how.changed, *(["infer"] if infer != "types" else [])]
    for name in given:
        if (format_ in _COUNTS and name not in _COUNTS[format_]) or (
            format_ == TABS and name == "separator" and how.separator != "\t"
        ):
            kind = "csv with tabs" if format_ == TABS else format_
            raise InvalidInput(
                "arguments_conflict",
                f"{called(name)} has no effect, because the files are {kind}; leave it out, or "
                "correct the format.",
            )


def _check_rename(how: TextOptions, rename: Mapping[str, str]) -> None:
    """Raise InvalidInput for new names of columns that have none, and for one name of two."""
    if rename and not how.header:
        raise InvalidInput(
            "arguments_conflict",
            f"{called('rename')} has no effect, because the files have no header line and their "
            "columns are those of the stream, in order; leave it out.",
        )
    new = [name.lower() for name in rename.values()]
    if twice := [name for name in rename.values() if new.count(name.lower()) > 1]:
        raise InvalidInput(
            "argument_invalid",
            f"{called('rename')} calls two columns {twice[0]!r}; give each its own name.",
        )


def find_inputs(
    paths: Sequence[str],
    roots: Sequence[str],
    format_: str = AUTO,
    how: TextOptions | None = None,
    infer: str = "types",
    rename: Mapping[str, str] | None = None,
) -> Inputs:
    """Return the files that the paths name, checked. A folder stands for all files in it, by name.
    A folder of folders whose names hold a column (`dt=2026-01-01`) stands for their files. The
    format `auto` is derived from the names' endings; .tsv is csv with tabs, whatever the
    options.

    Raises InvalidInput for a path outside the input roots, for one that does not exist or is
    hidden, and for an empty list.
    """
    check_choice(called("format"), format_, (AUTO, *FORMATS))
    if not paths:
        raise InvalidInput("argument_missing", "no input file is named; give at least one path.")
    found: list[tuple[str, int, str]] = []
    folders: list[str] = []
    root = ""
    for given in paths:
        check_text("the path", given)
        this_root, relative, there = _found(given, roots)
        if root and this_root != root:
            raise InvalidInput(
                "file_invalid",
                "the files of one append lie below different input roots; append the files of "
                "each root separately.",
            )
        root = this_root
        if [path for path, _, _ in there] != [relative]:
            folders.append(relative)
        found += there
    if len({path for path, _, _ in found}) < len(found):
        raise InvalidInput("argument_invalid", "an input file is named twice; name each file once.")
    if len(found) > 1 << FILE_BITS:
        raise InvalidInput(
            "argument_invalid",
            f"the append has {len(found):,} files, but may have at most {1 << FILE_BITS:,}; append "
            "them in several runs.",
        )
    partitions_of([path for path, _, _ in found])
    if format_ == AUTO:
        format_ = format_of([path for path, _, _ in found])
    _check_effect(how or TextOptions(), infer, format_)
    _check_rename(how or TextOptions(), rename or {})
    if format_ == TABS:
        format_, how = "csv", replace(how or TextOptions(), separator="\t")
    return Inputs(
        root,
        tuple(InputFile(path, size) for path, size, _ in found),
        format_,
        how or TextOptions(),
        tuple(modified for _, _, modified in found),
        infer=infer,
        rename=tuple((rename or {}).items()),
        prefix="" if root in (roots[0].rstrip("/"), os.path.realpath(roots[0])) else root + "/",
        folders=tuple(folders),
        tags=tags_of(root, [path for path, _, modified in found if _is_fresh(modified)]),
    )


def _found(given: str, roots: Sequence[str]) -> tuple[str, str, list[tuple[str, int, str]]]:
    """Return the root of a path, the path below it, and the files that it names. Blanks around a
    path are part of it if there is such a file."""
    root, relative = below_root(given, roots, "input path")
    try:
        return root, relative, _look(root, relative, roots)
    except InvalidInput as error:
        if error.code != "file_not_found" or given == given.strip():
            raise
    return _found(given.strip(), roots)


def _is_fresh(modified: str) -> bool:
    """Return whether a file could be written again without another time: it has one in whole
    seconds, as object stores give it, and that is hardly over. Any other file gets a later one."""
    seconds, rest = divmod(int(modified), 10**9)
    return rest == 0 and seconds > time.time() - _FRESH


def tags_of(root: str, paths: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the path and the ETag of files that have one, by a request for each, in parallel."""
    system, base = filesystem(root)

    def tag(path: str) -> tuple[str, str]:
        try:
            with system.open_input_file(f"{base}/{path}") as source:
                facts = {key.lower(): value for key, value in (source.metadata() or {}).items()}
        except OSError:  # it is gone, which others say
            return path, ""
        return path, bytes(facts.get("etag", b"")).decode()

    if not paths or isinstance(system, fs.LocalFileSystem):
        return ()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return tuple(one for one in pool.map(tag, paths) if one[1])


def _look(root: str, relative: str, roots: Sequence[str]) -> list[tuple[str, int, str]]:
    system, base = filesystem(root)
    try:
        info = system.get_file_info(f"{base}/{relative}")
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        raise InvalidInput(
            "file_invalid",
            f"the input path {shortened(relative)} is longer than a file name may be; shorten it.",
        ) from None
    if info.type == fs.FileType.NotFound:
        raise InvalidInput(
            "file_not_found",
            f"the input file {shortened(relative)} does not exist in {root}; check its path.",
        )
    infos = [info]
    if info.type == fs.FileType.Directory:
        listed = system.get_file_info(fs.FileSelector(info.path))
        try:
            infos = sorted(
                (i for i in listed if not i.base_name.startswith((".", "_"))), key=lambda i: i.path
            )
        except UnicodeDecodeError as error:
            raise InvalidInput(
                "file_invalid",
                f"the input folder {relative!r} has a file whose name {error.object!r} is not "
                "UTF-8; rename it.",
            ) from None
        if folders := [i for i in infos if i.type == fs.FileType.Directory]:
            if len(folders) == len(infos) and all(is_partition(i.base_name) for i in folders):
                return _below(root, relative, [i.base_name for i in folders], roots)
            for i in folders:
                raise InvalidInput(
                    "file_invalid",
                    f"the input folder {relative!r} contains another folder, {i.base_name!r}; "
                    "name the folders one by one, in the order in which to read them.",
                )
        if not infos:
            raise InvalidInput(
                "folder_empty",
                f"the input folder {relative!r} in {root} has no files; name one that has.",
            )
        for i in infos:  # a link in the folder must not point outside the root
            below_root(f"{root}/{i.path[len(base) + 1 :]}", roots, "input path")
    for i in infos:
        if i.type == fs.FileType.Unknown:
            raise not_regular("input path", i.path[len(base) + 1 :])
        if i.base_name.startswith((".", "_")) or i.base_name.endswith("._COPYING_"):
            raise InvalidInput(
                "file_invalid",
                f"the input file {i.base_name!r} can't be read, because files whose names begin "
                "with . or _ are hidden; rename it.",
            )
    return [(i.path[len(base) + 1 :], i.size, str(i.mtime_ns)) for i in infos]


def _below(
    root: str, relative: str, folders: Sequence[str], roots: Sequence[str]
) -> list[tuple[str, int, str]]:
    """Return the files in folders whose names hold a column. One without files counts as none."""
    found = []
    for folder in folders:
        try:
            found += _look(root, f"{relative}/{folder}".lstrip("/"), roots)
        except InvalidInput as error:
            if error.code != "folder_empty":
                raise
    if not found:
        raise InvalidInput(
            "folder_empty",
            f"the input folder {relative!r} in {root} has no files; name one that has.",
        )
    return found
