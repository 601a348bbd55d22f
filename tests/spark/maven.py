"""Jars of Maven Central, for tests of file systems that Spark does not bring."""

import os
import tempfile
import urllib.request
from pathlib import Path

CACHE = Path(tempfile.gettempdir()) / "weir-tests-maven"
CENTRAL = "https://repo1.maven.org/maven2"
S3A = (
    "org.apache.hadoop:hadoop-aws:3.5.0",
    "software.amazon.awssdk:bundle:2.35.4",
    "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3:1.3.1",
)


def jars(*coordinates: str) -> str:
    """Return the files of some artifacts as spark-submit takes them; each is fetched once."""
    CACHE.mkdir(exist_ok=True)
    found = []
    for one in coordinates:
        group, name, version = one.split(":")
        file = CACHE / f"{name}-{version}.jar"
        if not file.exists():
            url = f"{CENTRAL}/{group.replace('.', '/')}/{name}/{version}/{file.name}"
            part = file.with_suffix(f".{os.getpid()}")
            urllib.request.urlretrieve(url, part)  # noqa: S310 - a constant
            part.rename(file)
        found.append(str(file))
    return ",".join(found)
