"""Where pictures are written: below the first output root, apart from what consumers write."""

import re

from weir.errors import InvalidInput
from weir.model.names import StreamName
from weir.settings import Settings
from weir.warehouse.filesystem import filesystem, make_folder

FOLDER = "_weir_reports"  # Spark reads no folder whose name begins with _


def write_picture(settings: Settings, stream: StreamName, name: str, svg: str) -> str:
    """Write a picture and return its path. One with the same name is replaced.

    `name`: of which letters, digits and hyphens make the file's name. Raises InvalidInput if the
    installation has no output root.
    """
    if not settings.output_roots:
        raise InvalidInput(
            "setting_invalid",
            "setting 'output_roots' is empty, so no picture can be written; name a folder.",
        )
    file = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")
    folder = f"{FOLDER}/{stream.scope}/{stream.name}"
    found, root = filesystem(settings.output_roots[0])
    make_folder(found, f"{root}/{folder}")
    with found.open_output_stream(f"{root}/{folder}/{file}.svg") as out:
        out.write(svg.encode())
    return f"{settings.output_roots[0].rstrip('/')}/{folder}/{file}.svg"
