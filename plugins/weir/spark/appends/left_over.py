"""What tasks that failed have left below the folder of an attempt."""

from pyarrow import fs

from weir.kernel.attempt import Staged
from weir.warehouse.file_deletion import delete_here
from weir.warehouse.filesystem import filesystem


def delete_left_over(warehouse: str, staged: Staged) -> None:
    """Delete the files of an attempt that do not count. What can't be deleted now, or is written
    later, is in nobody's way."""
    known = {file.path for file in (*staged.files, *staged.rejected_files)}
    system, base = filesystem(warehouse)
    folder = f"{base}/{staged.attempt.folder}".rstrip("/")
    below = fs.FileSelector(folder, allow_not_found=True, recursive=True)
    paths = [info.path[len(base) + 1 :] for info in system.get_file_info(below) if info.is_file]
    if failed := [(warehouse, path) for path in paths if path not in known]:
        delete_here(failed)
