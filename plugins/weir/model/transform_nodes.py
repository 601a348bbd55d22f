"""What columns with transforms and conditions consist of (`weir.model.transforms` reads them)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

# These are no names of columns without backquotes.
WORDS = frozenset("and or not is null in like between true false as".split())


@dataclass(frozen=True)
class Column:
    """A column, or a field of a nested one: the names from the outermost on."""

    path: tuple[str, ...]


@dataclass(frozen=True)
class Constant:
    """A text, a number or a truth. `kind`: date or timestamp if a text was written as one."""

    value: str | Decimal | bool
    kind: str = ""


@dataclass(frozen=True)
class Call:
    """A transform, a comparison, `and`, `or`, `not`, `is null`, `in`, `like`, or `cast`, of which
    the second argument is the type."""

    name: str
    args: "tuple[Node, ...]"


Node: TypeAlias = Column | Constant | Call


@dataclass(frozen=True)
class Transform:
    """What was written, and what it means. `columns`: those that it uses (of a nested column, the
    outermost), each once. `places`: where they stand in the text."""

    text: str
    node: Node
    columns: tuple[str, ...]
    places: tuple[tuple[int, int, str], ...] = ()

    @property
    def plain(self) -> str | None:
        """The column that this is, if it is no more."""
        node = self.node
        return node.path[0] if isinstance(node, Column) and len(node.path) == 1 else None

    def renamed(self, new: Mapping[str, str]) -> str:
        """Return the text with other names of columns. `new`: by the names in lower case."""
        text = self.text
        for begin, end, name in reversed(self.places):
            if name.lower() in new:
                text = text[:begin] + written(new[name.lower()]) + text[end:]
        return text


def written(column: str) -> str:
    """Return the name of a column as it is written here."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", column) and column.lower() not in WORDS:
        return column
    return "`" + column.replace("`", "``") + "`"
