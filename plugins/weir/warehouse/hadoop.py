"""Hadoop's file systems in the form of pyarrow's, for those that pyarrow does not support.

Each operation calls the JVM that belongs to this process, which takes about 0.1 ms. Python workers
of executors have no JVM, so all this happens in the driver, with threads where there is much to do.
A JVM in each worker would cost seconds and hundreds of megabytes, a jar of ours one build for each
version of Spark.
"""

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from py4j.java_gateway import JavaGateway, JavaObject, JavaPackage, JVMView, is_instance_of
from py4j.protocol import Py4JJavaError
from pyarrow import fs
from pyspark import SparkContext
from pyspark.errors.exceptions.captured import CapturedException

_PIECE = 16 << 20  # bytes that are fetched from the JVM at once, as text


def filesystem(root: str) -> tuple[fs.FileSystem, str]:
    """Return Hadoop's file system for a URI, and the URI's path in it.

    Raises OSError for a URI that Hadoop does not support, and in a process without a JVM: one that
    has made no Spark session and was not started by spark-submit. Makes no session.
    """
    if not has_jvm():
        raise OSError("this process has no JVM")
    SparkContext._ensure_initialized()
    hadoop: JavaPackage = SparkContext._jvm.org.apache.hadoop.fs  # type: ignore[union-attr]  # just made
    with _as_os_errors():
        path = hadoop.Path(root)
        found = path.getFileSystem(_configuration())
        return fs.PyFileSystem(_Hadoop(hadoop, found)), str(path.toUri().getPath())


def has_jvm() -> bool:
    """Return whether this process has a JVM."""
    return SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ


def _configuration() -> JavaObject:
    """Return Hadoop's settings with all `spark.hadoop.*`, as Spark itself reads and writes with."""
    context = SparkContext._active_spark_context
    if context is not None:
        return context._jsc.hadoopConfiguration()
    jvm: JVMView = SparkContext._jvm
    return jvm.org.apache.spark.deploy.SparkHadoopUtil.get().conf()  # of spark-submit


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """Turn Java's exceptions into those that Python raises for files, with their first line."""
    try:
        yield
    except Py4JJavaError as error:
        raised = error.java_exception
        gone = is_instance_of(SparkContext._gateway, raised, "java.io.FileNotFoundException")
        message = str(raised.toString()).partition("\n")[0]
        raise (FileNotFoundError if gone else OSError)(message) from None
    except CapturedException as error:  # a Spark session wraps some exceptions in its own
        raise OSError(str(error).strip().partition("\n")[0]) from None


class _Hadoop(fs.FileSystemHandler):  # type: ignore[misc]  # pyarrow has no types
    """What Weir needs of a file system, by Hadoop's. Paths are those of URIs, without the host."""

    def __init__(self, hadoop: JavaPackage, system: JavaObject) -> None:
        self._hadoop, self._system = hadoop, system
        self._path = hadoop.Path  # looking up a class costs several calls

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Hadoop) and bool(self._system.equals(other._system))

    def __hash__(self) -> int:
        return int(self._system.hashCode())

    def get_type_name(self) -> str:
        return "hadoop"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        return [self._look(path) for path in paths]

    def _look(self, path: str) -> fs.FileInfo:
        try:
            with _as_os_errors():
                return _info(self._system.getFileStatus(self._path(path)))
        except FileNotFoundError:
            return fs.FileInfo(path, fs.FileType.NotFound)

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        """List a folder. If recursive, only its files, for which Hadoop needs few requests."""
        folder = self._path(selector.base_dir)
        found = []
        try:
            with _as_os_errors():
                if not selector.recursive:
                    return [_info(status) for status in self._system.listStatus(folder)]
                entries = self._system.listFiles(folder, True)
                while entries.hasNext():
                    found.append(_info(entries.next(), fs.FileType.File))
        except FileNotFoundError:
            if not selector.allow_not_found:
                raise
        return found

    def create_dir(self, path: str, recursive: bool) -> None:
        with _as_os_errors():
            if not self._system.mkdirs(self._path(path)):
                raise OSError(f"the folder {path} can't be created")

    def delete_dir(self, path: str) -> None:
        self._delete(path, True)

    def delete_file(self, path: str) -> None:
        self._delete(path, False)

    remove_empty = delete_file  # of a folder; raises OSError if something is in it

    def _delete(self, path: str, recursive: bool) -> None:
        with _as_os_errors():
            where = self._path(path)
            if self._system.delete(where, recursive):
                return
            # False means that it does not exist; on some file systems, that it may not be deleted.
            if self._system.exists(where):
                raise OSError(f"{path} can't be deleted; check that this login may delete there")
            raise FileNotFoundError(path)

    def move(self, src: str, dest: str) -> None:
        """Rename a file so that it replaces another.

        `FileSystem.rename` replaces nothing on HDFS; `FileContext` does so in one step. A file
        system without it takes two steps.
        """
        old, new = (self._system.makeQualified(self._path(path)) for path in (src, dest))
        with _as_os_errors():
            try:
                context = self._hadoop.FileContext.getFileContext(
                    self._system.getUri(), self._system.getConf()
                )
            except Py4JJavaError as error:
                named = "org.apache.hadoop.fs.UnsupportedFileSystemException"
                if not is_instance_of(SparkContext._gateway, error.java_exception, named):
                    raise
                self._system.delete(new, False)
                if not self._system.rename(old, new):
                    raise OSError(f"{src} can't be renamed to {dest}") from None
                return
            gateway: JavaGateway = SparkContext._gateway
            rename = self._hadoop.Options.Rename
            how = gateway.new_array(rename, 1)
            how[0] = rename.OVERWRITE
            context.rename(old, new, how)

    def open_input_stream(self, path: str) -> pa.PythonFile:
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> pa.PythonFile:
        with _as_os_errors():
            where = self._path(path)
            size = int(self._system.getFileStatus(where).getLen())
            return pa.PythonFile(_Input(self._system.open(where), size), mode="r")

    def open_output_stream(self, path: str, metadata: object) -> pa.PythonFile:
        with _as_os_errors():
            return pa.PythonFile(_Output(self._system.create(self._path(path), True)), mode="w")

    def _never(self, *_: object, **__: object) -> None:
        raise OSError("Weir does not use this operation of Hadoop's file systems")

    # pyarrow requires these of every handler.
    copy_file = open_append_stream = delete_dir_contents = delete_root_dir_contents = _never


def _info(status: JavaObject, kind: fs.FileType | None = None) -> fs.FileInfo:
    if kind is None:
        kind = fs.FileType.Directory if status.isDirectory() else fs.FileType.File
    return fs.FileInfo(
        status.getPath().toUri().getPath(),
        kind,
        size=status.getLen() if kind == fs.FileType.File else None,
        mtime_ns=status.getModificationTime() * 1_000_000,
    )


class _File(io.RawIOBase):
    """A file of Hadoop's."""

    def __init__(self, stream: JavaObject) -> None:
        self._stream, self._at = stream, 0

    def tell(self) -> int:
        return self._at

    def close(self) -> None:
        if not self.closed:
            with _as_os_errors():
                self._stream.close()
        super().close()


class _Input(_File):
    """One that is readable from any position."""

    def __init__(self, stream: JavaObject, size: int) -> None:
        super().__init__(stream)
        self._size = size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def read(self, size: int = -1) -> bytes:
        end = self._size if size < 0 else min(self._size, self._at + size)
        pieces = []
        with _as_os_errors():
            self._stream.seek(self._at)
            while self._at < end:
                piece = bytes(self._stream.readNBytes(min(_PIECE, end - self._at)))
                if not piece:
                    raise OSError(
                        f"the file should have {self._size} bytes, but ends after {self._at}"
                    )
                pieces.append(piece)
                self._at += len(piece)
        return b"".join(pieces)


class _Output(_File):
    """A new one."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        written = memoryview(data).cast("B")
        with _as_os_errors():
            for first in range(0, len(written), _PIECE):
                self._stream.write(bytes(written[first : first + _PIECE]))
        self._at += len(written)
        return len(written)
