"""The files of the warehouse, by their paths and as pyiceberg asks for them: by their addresses."""

from dataclasses import dataclass

from pyarrow import fs
from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.io.pyarrow import PyArrowFile


@dataclass(frozen=True)
class Place:
    """The warehouse: its file system, its path there, and its address for other engines."""

    system: fs.FileSystem
    base: str
    root: str

    def file(self, path: str) -> PyArrowFile:
        """Return a file, by its path below the warehouse."""
        return PyArrowFile(f"{self.root}/{path}", f"{self.base}/{path}", self.system)


class Files(FileIO):
    """The files of the warehouse by their addresses."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self._place = place

    def new_input(self, location: str) -> InputFile:
        return self._place.file(self.path(location))

    def new_output(self, location: str) -> OutputFile:
        return self._place.file(self.path(location))

    def delete(self, location: str | InputFile | OutputFile) -> None:
        raise NotImplementedError("files are deleted by a sweep only")

    def path(self, location: str) -> str:
        """Return the path of a file below the warehouse."""
        return location.removeprefix(self._place.root + "/")
