"""Objects of S3: deleted a thousand in a request, and with nothing left in their place.

pyarrow deletes them one by one, and writes an empty object for the folder of each, which stays.
botocore logs in as pyarrow does: by the same variables, files and roles.
"""

from collections.abc import Sequence
from contextlib import suppress
from urllib.parse import parse_qs, unquote, urlsplit

from botocore.client import BaseClient
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import get_session

AT_ONCE = 1000  # objects that S3 deletes in one request
_TRIES = 3  # as pyarrow's, at a request that the store does not answer, or answers with 503


def delete_objects(root: str, paths: Sequence[str], marks: Sequence[str] = ()) -> dict[str, str]:
    """Delete objects below a root; of a path that ends in a slash, all objects below it, and the
    uploads that were not finished. Return the reason for each path that is left.

    `marks`: names of folders; the objects of these names are deleted, and nothing below them. What
    is missing counts as deleted. Raises OSError if the store does not answer.
    """
    try:
        bucket = _Bucket(root)
        failed: dict[str, str] = {}
        files = [*(path for path in paths if not path.endswith("/")), *marks]
        for first in range(0, len(files), AT_ONCE):
            failed |= bucket.delete(files[first : first + AT_ONCE])
        for folder in paths:
            if folder.endswith("/") and (reasons := bucket.delete_below(folder)):
                failed[folder] = next(iter(reasons.values()))
        return failed
    except (BotoCoreError, ClientError) as error:
        raise OSError(str(error)) from error


class _Bucket:
    """The bucket of a root. Names are those below the root."""

    def __init__(self, root: str) -> None:
        parts = urlsplit(root)
        # What a URI says goes before the environment, as with pyarrow.
        asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
        address = asked.get("endpoint_override")
        if address and "://" not in address:
            address = f"{asked.get('scheme', 'https')}://{address}"
        self._s3: BaseClient = get_session().create_client(
            "s3", region_name=asked.get("region"), endpoint_url=address,
            aws_access_key_id=parts.username and unquote(parts.username),
            aws_secret_access_key=parts.password and unquote(parts.password),
            config=Config(retries={"mode": "standard", "total_max_attempts": _TRIES}),
        )  # fmt: skip
        self._name = parts.netloc.rpartition("@")[2]
        self._prefix = f"{unquote(parts.path).strip('/')}/".lstrip("/")

    def delete(self, names: Sequence[str]) -> dict[str, str]:
        """Delete some objects; return the reason for each that is left."""
        keys = [{"Key": self._prefix + name} for name in names]
        try:
            answer = self._s3.delete_objects(
                Bucket=self._name, Delete={"Objects": keys, "Quiet": True}
            )
        except ClientError as error:
            status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
            if status >= 500 and status != 501:
                raise
            # Not every store that speaks S3 knows this request.
            return {name: reason for name in names if (reason := self._delete_one(name))}
        return {
            one["Key"].removeprefix(self._prefix): f"{one.get('Code')}: {one.get('Message')}"
            for one in answer.get("Errors", ())
        }

    def _delete_one(self, name: str) -> str:
        try:
            self._s3.delete_object(Bucket=self._name, Key=self._prefix + name)
        except ClientError as error:
            return str(error)
        return ""

    def delete_below(self, folder: str) -> dict[str, str]:
        """Delete all objects below a folder, and the uploads there that a kill has left; return the
        reason for each object that is left."""
        failed: dict[str, str] = {}
        where = {"Bucket": self._name, "Prefix": self._prefix + folder}
        for page in self._s3.get_paginator("list_objects_v2").paginate(**where):
            found = [one["Key"].removeprefix(self._prefix) for one in page.get("Contents", ())]
            if found:
                failed |= self.delete(found)
        with suppress(ClientError):  # a store without uploads, or a login that may not list them
            for one in self._s3.list_multipart_uploads(**where).get("Uploads", ()):
                self._s3.abort_multipart_upload(
                    Bucket=self._name, Key=one["Key"], UploadId=one["UploadId"]
                )
        return failed
