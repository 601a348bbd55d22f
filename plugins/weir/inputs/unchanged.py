"""Look at input files again before their rows are committed: what was changed while it was read has
given rows of which nobody knows which they are.

S3's times are whole seconds, so of files that were just written the ETag is compared, too. To ask
for all would be a request for each."""

from pyarrow import fs

from weir.inputs.files import Inputs, tags_of
from weir.inputs.unreadable import UnreadableFile
from weir.warehouse.filesystem import filesystem

_SHOWN = 3  # the most files that a sentence names


def check_unchanged(inputs: Inputs) -> None:
    """Check that each file has the size and the time that it had before it was read, and that its
    folder has no other files. Folders that were named are listed once. A file that was just written
    when it was looked at first, with a time in whole seconds, also has the same ETag.

    Raises UnreadableFile, so that another try takes the files as they are by then.
    """
    before = {
        file.path: (file.bytes, modified)
        for file, modified in zip(inputs.files, inputs.modified, strict=True)
    }
    now = _seen(inputs)
    changed = sorted(path for path in before.keys() | now.keys() if before.get(path) != now[path])
    if not changed and inputs.tags:
        tags = tags_of(inputs.root, [path for path, _ in inputs.tags])
        changed = sorted(path for path, _ in {*inputs.tags} - {*tags})
    if not changed:
        return
    more = f" and {len(changed) - _SHOWN:,} more" if len(changed) > _SHOWN else ""
    first = changed[0]
    how = (
        "is new" if first not in before
        else "is gone" if now[first] is None
        else f"has {now[first][0]:,} bytes, and had {before[first][0]:,}"  # type: ignore[index]  # not None
        if now[first][0] != before[first][0]  # type: ignore[index]
        else "was written again"
    )  # fmt: skip
    raise UnreadableFile(
        "file_unreadable",
        f"{len(changed):,} input files changed while they were read ({', '.join(changed[:_SHOWN])}"
        f"{more}: the first {how}), so nothing was appended; append them again once nobody writes "
        "to them.",
    )


def _seen(inputs: Inputs) -> dict[str, tuple[int, str] | None]:
    """Return size and time of each file, also of those that are new in a folder; None if it is
    gone."""
    system, base = filesystem(inputs.root)
    found: dict[str, tuple[int, str] | None] = {}
    for folder in inputs.folders:
        whole = f"{base}/{folder}".rstrip("/")
        below = fs.FileSelector(whole, allow_not_found=True, recursive=True)
        for one in system.get_file_info(below):
            inner = one.path[len(whole) + 1 :].split("/")
            if one.type == fs.FileType.File and not any(n.startswith((".", "_")) for n in inner):
                found[one.path[len(base) + 1 :]] = _facts(one)
    paths = [file.path for file in inputs.files]
    folders = tuple(f"{folder}/".lstrip("/") for folder in inputs.folders)
    alone = [path for path in paths if not path.startswith(folders)]
    infos = system.get_file_info([f"{base}/{path}" for path in alone]) if alone else []
    found |= {path: _facts(one) for path, one in zip(alone, infos, strict=True)}
    return {**dict.fromkeys(paths), **found}


def _facts(one: fs.FileInfo) -> tuple[int, str] | None:
    return None if one.type == fs.FileType.NotFound else (one.size, str(one.mtime_ns))
