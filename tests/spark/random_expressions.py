"""Random expressions, of functions that are allowed and of some that are not, and rows for them."""

import random
from typing import Any

TEXTS = [
    "", "a", "b", "ab", "ŉ", "ΐ", "İ", "ß", "ﬃ", "😀", "\x01", '"', "\\", "1", "-1.5", "1e9",
    "2024-02-29", "2024-02-29 12:30:00", '{"a": [1, "x"], "b": {"c": 1e9}}', "a,b,,c", "$1", "%",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "ŉŉŉŉŉŉŉŉ", "\x01\x01\x01\x01", '""""""""',
]  # fmt: skip
COLUMNS = "s string, r string, n bigint, d double, t timestamp, b boolean, xs array<string>"
LITERALS = ["''", "'a'", "'ab'", "'😀'", "','", "'yyyy-MM-dd'", "'$.a'", "'$1'", "'(.)'", "'.*'",
            "'(?=(.*))'", "'#,##0.00'", "'day'", "0", "1", "2", "-1", "7", "256", "1000",
            "2000000000", "1.5", "true", "null", "DATE '2024-01-31'", "interval 1 day"]  # fmt: skip
NAMES: list[str] = [*"srndtb", "xs", "xs[0]", "nothing", "user", "current_date", "`s`", "s.x"]
# How many arguments a function mostly has; others are tried as well.
CALLS = {
    "concat": 3, "concat_ws": 3, "replace": 3, "regexp_replace": 3, "regexp_extract": 3, "lpad": 3,
    "rpad": 3, "translate": 3, "substring": 3, "substring_index": 3, "split": 2, "split_part": 3,
    "format_number": 2, "round": 2, "floor": 2, "ceil": 2, "date_format": 2, "date_trunc": 2,
    "trunc": 2, "get_json_object": 2, "coalesce": 2, "greatest": 2, "least": 2, "nvl": 2, "nvl2": 3,
    "nullif": 2, "ifnull": 2, "if": 3, "left": 2, "right": 2, "pmod": 2, "mod": 2, "sha2": 2,
    "element_at": 2, "struct": 2, "to_date": 1, "to_timestamp": 1,
}  # fmt: skip
FORBIDDEN = """repeat space sequence array_repeat java_method reflect rand uuid current_user now
    input_file_name explode transform array_join version from_json assert_true raise_error
    load_file""".split()
OPERATORS = ["+", "-", "*", "/", "%", "||", "=", "<", "<=>", "AND", "OR", "LIKE", "RLIKE", "div"]
TYPES = ["string", "int", "bigint", "double", "decimal(10,2)", "date", "timestamp", "boolean",
         "binary"]  # fmt: skip


class Expressions:
    """Draws expressions. `functions`: those that are allowed."""

    def __init__(self, seed: Any, functions: frozenset[str]) -> None:
        self.random = random.Random(seed)
        self._functions = sorted(functions - {"between", "extract"})

    def draw(self, depth: int = 5) -> str:
        """Return an expression."""
        chance, pick = self.random.random(), self.random.choice
        if depth == 0 or chance < 0.1:
            return pick(NAMES[:7]) if self.random.random() < 0.85 else pick(NAMES)
        if chance < 0.2:
            return pick(LITERALS)
        if chance < 0.3:
            return f"({self.draw(depth - 1)} {pick(OPERATORS)} {self.draw(depth - 1)})"
        if chance < 0.36:
            return f"cast({self.draw(depth - 1)} AS {pick(TYPES)})"
        if chance < 0.4:
            parts = [self.draw(depth - 1) for _ in range(3)]
            return f"CASE WHEN {parts[0]} THEN {parts[1]} ELSE {parts[2]} END"
        name = pick(FORBIDDEN) if chance > 0.99 else pick(self._functions)
        count = CALLS.get(name, 1) if self.random.random() < 0.95 else self.random.randrange(5)
        given = [self.draw(depth - 1)] + [
            pick(LITERALS) if self.random.random() < 0.6 else self.draw(depth - 1)
            for _ in range(1, count)
        ]
        if name == "named_struct":
            given = ["'x'", given[0]]
        return f"{name}({', '.join(given[:count])})"

    def rows(self, count: int) -> list[tuple[Any, ...]]:
        """Return rows with `COLUMNS`."""
        pick = self.random.choice
        return [
            (
                pick(TEXTS), pick(TEXTS), pick([0, 1, -1, 10**18, None]),
                pick([0.0, 1.5, -1e308, 1e-300, None]), None, pick([True, False, None]),
                [pick(TEXTS) for _ in range(self.random.randrange(3))],
            )
            for _ in range(count)
        ]  # fmt: skip
