"""As much of S3 as pyarrow, botocore and Hadoop ask for: one bucket in memory, for one access key.

Beside it there is nothing that a folder has: no folders, no renaming, no half-written objects. It
counts what it is asked, and fails as a test wants it to.
"""

import hashlib
import io
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET, KEY_ID, SECRET = "lake", "weir", "secret"
_KEYS = re.compile(r"<Key>(.*?)</Key>")


@dataclass
class ObjectStore:
    """What a server holds, and how to find it."""

    port: int = 0
    objects: dict[str, bytes] = field(default_factory=dict)
    # What began in parts and is not finished, by the id of the upload: the name, and the parts.
    uploads: dict[str, tuple[str, dict[int, bytes]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)  # its method, and what it is about
    # What goes wrong with a request (as in `asked`): `503`, or its answer is `slow`, `cut` in the
    # middle, or `lost` altogether after it was done; or nothing.
    fault: Callable[[str], str] = lambda _: ""
    written: int = 1704067200  # the time of all objects: 2024, and whole seconds as in S3

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables with which pyarrow finds the server, and may use it."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}", "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": "eu-central-1",
            "AWS_EC2_METADATA_DISABLED": "true", "NO_PROXY": "127.0.0.1",
        }  # fmt: skip


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """Yield a server with an empty bucket."""
    store = ObjectStore()
    handler = type("Handler", (_Handler,), {"store": store})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        store.port = server.server_address[1]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield store
        server.shutdown()


class _Handler(BaseHTTPRequestHandler):
    store: ClassVar[ObjectStore]
    protocol_version = "HTTP/1.1"

    def log_message(self, *_args: object) -> None:
        """Print nothing."""

    def _answer(self) -> None:
        split = urlsplit(self.path)
        self._asked = {k: v[0] for k, v in parse_qs(split.query, keep_blank_values=True).items()}
        bucket, _, self._name = unquote(split.path).lstrip("/").partition("/")
        self._body = self._read()
        asked = f"{self.command} {self._name or split.query}"
        self.store.asked.append(asked)
        fault = self.store.fault(asked)
        if fault == "503":
            return self._error(503, "SlowDown")
        if fault == "slow":
            time.sleep(0.5)
        if fault not in ("cut", "lost"):
            return self._do(bucket)
        connection, self.wfile = self.wfile, io.BytesIO()
        self._do(bucket)
        answer = self.wfile.getvalue()
        self.wfile = connection
        if fault == "cut":
            self.wfile.write(answer[: len(answer) * 2 // 3])
        self.close_connection = True

    def _do(self, bucket: str) -> None:
        if f"Credential={KEY_ID}/" not in self.headers.get("Authorization", ""):
            return self._error(403, "InvalidAccessKeyId")
        if bucket != BUCKET:
            return self._error(404, "NoSuchBucket")
        getattr(self, f"_{self.command.lower()}")()

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _answer

    def _read(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        else:
            body = b"".join(_chunks(self.rfile))
        if "aws-chunked" in self.headers.get("Content-Encoding", ""):
            body = b"".join(_chunks(io.BytesIO(body)))
        return body

    def _send(self, status: int, body: bytes = b"", /, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content_Length": str(len(body)), "ETag": '"x"', **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _xml(self, text: str) -> None:
        self._send(200, f'<?xml version="1.0"?>{text}'.encode(), Content_Type="application/xml")

    def _error(self, status: int, code: str) -> None:
        self._send(status, f"<Error><Code>{code}</Code></Error>".encode())

    def _facts(self, content: bytes) -> dict[str, str]:
        written = formatdate(self.store.written, usegmt=True)
        return {"Last_Modified": written, "ETag": f'"{hashlib.sha256(content).hexdigest()}"'}

    def _head(self) -> None:
        if not self._name:
            self._send(200)
        elif (found := self.store.objects.get(self._name)) is None:
            self._error(404, "NoSuchKey")
        else:
            self._send(200, Content_Length=str(len(found)), **self._facts(found))

    def _get(self) -> None:
        if "uploads" in self._asked:
            open_ = [f"<Upload><Key>{escape(name)}</Key><UploadId>{upload}</UploadId></Upload>"
                     for upload, (name, _) in self.store.uploads.items()
                     if name.startswith(self._asked.get("prefix", ""))]  # fmt: skip
            return self._xml(f"<ListMultipartUploadsResult>{''.join(open_)}"
                             "</ListMultipartUploadsResult>")  # fmt: skip
        if not self._name:
            return self._list()
        if (found := self.store.objects.get(self._name)) is None:
            return self._error(404, "NoSuchKey")
        if wanted := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
            first = int(wanted[1])
            last = min(int(wanted[2] or len(found)), len(found) - 1)
            part = found[first : last + 1]
            span = f"bytes {first}-{last}/{len(found)}"
            return self._send(206, part, Content_Range=span, **self._facts(found))
        self._send(200, found, **self._facts(found))

    def _list(self) -> None:
        prefix, delimiter = self._asked.get("prefix", ""), self._asked.get("delimiter", "")
        found = list[str]()
        folders = dict[str, None]()
        at = datetime.fromtimestamp(self.store.written, UTC)
        for name, content in sorted(self.store.objects.items()):
            if name.startswith(prefix):
                rest = name[len(prefix) :]
                if delimiter and delimiter in rest:
                    folders[prefix + rest.partition(delimiter)[0] + delimiter] = None
                else:
                    found.append(
                        f"<Contents><Key>{escape(name)}</Key><Size>{len(content)}</Size>"
                        f"<LastModified>{at:%Y-%m-%dT%H:%M:%S.000Z}</LastModified></Contents>"
                    )
        found += [f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>"
                  for one in folders]  # fmt: skip
        self._xml(f"<ListBucketResult><KeyCount>{len(found)}</KeyCount><IsTruncated>false"
                  f"</IsTruncated>{''.join(found)}</ListBucketResult>")  # fmt: skip

    def _put(self) -> None:
        if upload := self._asked.get("uploadId"):
            self.store.uploads[upload][1][int(self._asked["partNumber"])] = self._body
            self._send(200)
        elif source := self.headers.get("x-amz-copy-source"):
            name = unquote(source).lstrip("/").removeprefix(f"{BUCKET}/")
            if name not in self.store.objects:
                return self._error(404, "NoSuchKey")
            self.store.objects[self._name] = self.store.objects[name]
            self._xml("<CopyObjectResult><ETag>x</ETag></CopyObjectResult>")
        else:
            self.store.objects[self._name] = self._body
            self._send(200)

    def _post(self) -> None:
        if "delete" in self._asked:
            for name in _KEYS.findall(self._body.decode()):
                self.store.objects.pop(name, None)
            return self._xml("<DeleteResult></DeleteResult>")
        if "uploads" in self._asked:
            upload = f"u{len(self.store.asked)}"
            self.store.uploads[upload] = (self._name, {})
            return self._xml(
                f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId>"
                "</InitiateMultipartUploadResult>"
            )
        _, parts = self.store.uploads.pop(self._asked["uploadId"])
        self.store.objects[self._name] = b"".join(parts[n] for n in sorted(parts))
        self._xml("<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>")

    def _delete(self) -> None:
        if upload := self._asked.get("uploadId"):
            self.store.uploads.pop(upload, None)
        else:
            self.store.objects.pop(self._name, None)
        self._send(204)


def _chunks(stream: object) -> Iterator[bytes]:
    """Yield the chunks of a body, and of the body within it, up to the trailer."""
    read, line = stream.read, stream.readline  # type: ignore[attr-defined]
    while size := int(line().split(b";")[0].strip() or b"0", 16):
        yield read(size)
        line()
    while line().strip():
        continue
