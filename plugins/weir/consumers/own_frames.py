"""The lines of a user's own code from which an error came, in this process and on executors."""

import linecache
import re
from pathlib import Path
from traceback import extract_tb

from weir.errors import chain

WEIR = Path(__file__).parents[1]
# Python's own modules, what is installed beside them, and Spark, wherever a worker has them.
_OTHERS = re.compile(
    r"<|.*/lib(64)?/python\d[\d.]*/|.*/(pyspark|py4j[^/]*)\.zip/|.*/python/pyspark/"
)
_FRAME = re.compile(r'  File "(?P<file>.+)", line (?P<line>\d+), in (?P<name>.+)')
_OF_WORKER = "PythonException"  # of Spark: it has the traceback of a worker in its text
_HEADER = "Traceback (most recent call last):"
_LONGEST = 20  # frames that are shown of one error; a recursion has a thousand


def own_frames(error: BaseException) -> list[str]:
    """Return the frames of the user's code that led to an error, as Python writes them: its causes
    first, each with its own line. Empty if none of the code is the user's."""
    lines: list[str] = []
    for one in reversed(list(chain(error))):
        frames = [
            (frame.filename, frame.lineno or 0, frame.name, frame.line or "")
            for frame in extract_tb(one.__traceback__)
        ]
        found = _shown(frames)
        if type(one).__name__ == _OF_WORKER:
            found += _of_worker(str(one))
        elif found and one is not error:
            found.append(f"{type(one).__name__}: {one}".splitlines()[0])
        lines += found
    return lines


def place_of(error: BaseException) -> str:
    """Return the file and line of the user's code where an error arose; empty if it is others'."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}"
    frames = [one for one in extract_tb(error.__traceback__) if _is_own(one.filename)]
    return f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else ""


def _of_worker(text: str) -> list[str]:
    """Return the frames of the tracebacks in the text of what a worker of Spark raised."""
    found: list[str] = []
    frames: list[tuple[str, int, str, str]] = []
    within = False
    for line in text.splitlines():
        if line == _HEADER:
            frames, within = [], True
        elif within and (match := _FRAME.fullmatch(line)):
            frames.append((match["file"], int(match["line"]), match["name"], ""))
        elif within and frames and line.startswith("    "):
            source = line.strip()
            if not frames[-1][3] and not set(source) <= set("^~ "):
                frames[-1] = (*frames[-1][:3], source)
        elif within and line and not line.startswith(" "):
            if shown := _shown(frames):
                found += [*shown, line]
            frames, within = [], False
    return found


def _shown(frames: list[tuple[str, int, str, str]]) -> list[str]:
    own = [one for one in frames if _is_own(one[0])]
    lines = []
    for file, number, name, source in own[-_LONGEST:]:
        lines.append(f'  File "{file}", line {number}, in {name}')
        if source := source or linecache.getline(file, number).strip():
            lines.append(f"    {source}")
    return lines


def _is_own(file: str) -> bool:
    if _OTHERS.match(file):
        return False
    path = Path(file)
    return not path.is_relative_to(WEIR)
