"""What attempts at tasks have left that does not count."""

from collections.abc import Collection

from pyarrow import fs

from weir.warehouse.file_deletion import delete_here
from weir.warehouse.filesystem import filesystem


def delete_left_over(root: str, folder: str, known: Collection[str]) -> bool:
    """Delete the files below a folder of a root that are none of these paths below the root. Return
    whether all are gone that were there."""
    system, base = filesystem(root)
    below = fs.FileSelector(f"{base}/{folder}".rstrip("/"), allow_not_found=True, recursive=True)
    paths = [info.path[len(base) + 1 :] for info in system.get_file_info(below) if info.is_file]
    others = [(root, path) for path in paths if path not in known]
    return not others or not delete_here(others)
