"""The Java that Spark starts, and classes in it."""

import os
import re
import shutil
import subprocess
from functools import cache, reduce
from pathlib import Path
from typing import Any

from weir.errors import InvalidInput

LEAST_JAVA = 17
REMEDY = f"install Java {LEAST_JAVA} or later, or set JAVA_HOME (`make setup` does it)"


def find_java() -> str:
    """Return the version and the path of the Java that Spark can use. Raises InvalidInput if there
    is none."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if program is None:
        raise InvalidInput("dependency_missing", f"there is no java; {REMEDY}.")
    try:
        output = subprocess.run([program, "-version"], capture_output=True, text=True).stderr
    except OSError as error:
        raise InvalidInput(
            "dependency_missing", f"{program} can't be run ({error.strerror}); {REMEDY}."
        ) from None
    match = re.search(r'version "(\d+)(?:\.(\d+))?', output)
    version = 0 if match is None else int(match[2] if match[1] == "1" and match[2] else match[1])
    if version < LEAST_JAVA:
        raise InvalidInput(
            "dependency_missing",
            f"{program} is Java {version or 'of an unknown version'}; {REMEDY}.",
        )
    return f"{version} ({program})"


@cache
def java_class(jvm: Any, name: str) -> Any:
    """Return a class of the JVM by its full name. Each part of a name is a question to the JVM, so
    it is looked up once."""
    return reduce(getattr, name.split("."), jvm)
