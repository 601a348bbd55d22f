"""The command `weir picture`: a stream or a reader group as a page in a file."""

import argparse
from pathlib import Path

from weir.errors import InvalidInput
from weir.terminal.look import Terminal
from weir.terminal.printing import note, print_json


def picture(terminal: Terminal, given: argparse.Namespace) -> int:
    """Write a stream (its segments, rates, scales, cuts, head, and how far groups have read, and
    what retention keeps), or a reader group (its unread events over time), as a page in a file,
    which a browser shows without a server."""
    from weir.pages.picture import picture_of

    if given.out is not None and given.out.lower().endswith(".svg"):
        raise InvalidInput(
            "argument_invalid",
            f"--out {given.out} would be an SVG, and a picture is a page of HTML; name a file such "
            "as map.html, and print it from a browser.",
        )
    drawn = picture_of(terminal.database, given.of, given.since, given.until)
    if given.out is None:
        if terminal.json:
            print_json({"html": drawn})
        else:
            print(drawn, end="")
        return 0
    try:
        Path(given.out).write_text(drawn, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(
            "argument_invalid",
            f"--out {given.out} cannot be written ({error.strerror}); name a file in a folder that "
            "exists, which you may write to.",
        ) from error
    if terminal.json:
        print_json({"out": given.out})
    else:
        note(f"{given.out} has the picture of {given.of}")
    return 0
