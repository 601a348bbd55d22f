"""What texts of numbers and times look like, as regular expressions that Python and RE2 read
alike. They are without anchors: each of these has its own sign for the end of a text."""

# A number as in JSON. Of a guessed column, as programs write a double back.
NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
CANONICAL = (
    r"-?(?:(?:0|[1-9][0-9]*)(?:\.(?:0|[0-9]*[1-9]))?"
    r"|[1-9](?:\.[0-9]*[1-9])?e[+-][0-9]{1,3}"  # as Python, pyarrow and JavaScript write it
    r"|[1-9]\.(?:0|[0-9]*[1-9])E-?[0-9]{1,3})"  # as Java does
)
PLAIN = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]{1,38})?"
MINUS_ZERO = r"-0(?:\.0*)?"
INFINITE = r"(?:[nN][aA][nN]|[+-]?(?:[iI]nf|INF|Infinity))"
SPECIAL = r"(?:NaN|-?Infinity)"
DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
CLOCK = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6}0*)?)?"
ZONE = r"(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)"
TIMESTAMP = rf"{DAY}[ T]{CLOCK} ?{ZONE}?"
