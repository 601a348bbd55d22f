"""YAML as people write declarations: dates are texts, and nothing is said twice."""

from re import Pattern
from typing import ClassVar

import yaml

from weir.errors import InvalidInput

LARGEST = 1_000_000  # values of a text, with those that it repeats by aliases
DEEPEST = 30  # lists and mappings within each other; the forms have four
LONGEST_NUMBER = 400  # characters; how long one takes to read grows with their square


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # yaml has no types
    """Like yaml.SafeLoader, but dates and times stay texts, as the forms take them."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, Pattern[str]]]]] = {
        first: [(tag, form) for tag, form in known if tag != "tag:yaml.org,2002:timestamp"]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    depth = 0

    def compose_node(self, parent: object, index: object) -> object:
        """Read a node as far as it is not nested too deeply, and no number is too long."""
        self.depth += 1
        if self.depth > DEEPEST:
            raise yaml.MarkedYAMLError(
                problem=f"more than {DEEPEST} lists and mappings are within each other",
                problem_mark=self.peek_event().start_mark,
            )
        node = super().compose_node(parent, index)
        number = isinstance(node, yaml.ScalarNode) and node.tag.endswith((":int", ":float"))
        if number and len(node.value) > LONGEST_NUMBER:
            raise yaml.MarkedYAMLError(
                problem=f"a number has more than {LONGEST_NUMBER} characters",
                problem_mark=node.start_mark,
            )
        self.depth -= 1
        return node


def read_yaml(text: str) -> object:
    """Return what a YAML text holds. Raises InvalidInput if it is not YAML, gives a name twice, or
    repeats itself without end by aliases."""
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        if _size(node, {}) > LARGEST:
            raise yaml.MarkedYAMLError(
                problem=f"it holds more than {LARGEST:,} values, with those that aliases repeat"
            )
        found: object = loader.construct_document(node)
        return found
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise InvalidInput(
            "declarations_invalid", f"the declarations can't be read as YAML: {_first(error)}."
        ) from None


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """Return how many values a node stands for, and check that no mapping names one twice. `known`:
    the sizes of nodes that were visited; 0 for those that are being visited."""
    if id(node) in known:
        if known[id(node)] == 0:
            raise yaml.MarkedYAMLError(
                problem="an alias stands for something that contains it",
                problem_mark=node.start_mark,
            )
        return known[id(node)]
    known[id(node)] = 0
    size = 1
    if isinstance(node, yaml.MappingNode):
        names = set()
        for name, value in node.value:
            size += _size(name, known) + _size(value, known)
            if isinstance(name, yaml.ScalarNode):
                if name.value in names:
                    raise yaml.MarkedYAMLError(
                        problem=f"{name.value!r} is given a second time",
                        problem_mark=name.start_mark,
                    )
                names.add(name.value)
    elif isinstance(node, yaml.SequenceNode):
        size += sum(_size(one, known) for one in node.value)
    known[id(node)] = size
    return size


def _first(error: Exception) -> str:
    """Return an error of the parser as a part of one line."""
    if isinstance(error, yaml.reader.ReaderError):
        return f"character {error.character!r} at position {error.position:,} is not allowed"
    mark = getattr(error, "problem_mark", None)
    where = f" in line {mark.line + 1}" if mark is not None else ""
    reason = (
        getattr(error, "problem", None)
        or str(error).partition(";")[0].partition("\n")[0]
        or type(error).__name__
    )
    return f"{reason}{where}"
