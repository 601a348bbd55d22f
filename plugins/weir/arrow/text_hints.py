"""What may be the cause where a text is not a value of its column."""

import re

_NUMBERS = ("byte", "short", "integer", "long", "float", "double", "decimal")


def hint(text: str, kind: str) -> str:
    """Return what the text looks like and what would help, in brackets; nothing if that is not
    obvious."""
    found = _of_number(text) if kind.startswith(_NUMBERS) else ""
    if kind.startswith(("date", "timestamp")):
        found = _of_time(text, kind)
    if kind == "boolean" and text.lower() in ("yes", "no", "y", "n", "t", "f", "0", "1"):
        found = "only true and false are; a column of strings keeps it"
    return f" ({found})" if found else ""


def _of_number(text: str) -> str:
    if text != text.strip():
        return "it has blanks around it"
    if re.fullmatch(r"[+-]?([0-9]{1,3}(\.[0-9]{3})+|[0-9]+),[0-9]+", text):
        return "it looks like a decimal comma: set decimal to ','" + (
            ", and thousands to '.'" if "." in text else ""
        )
    if re.fullmatch(r"[+-]?[0-9]{1,3}([,.' \u00a0\u202f][0-9]{3})+(\.[0-9]+)?", text):
        return "it looks like a number with separators of thousands: set thousands"
    if re.fullmatch(r"-?0[0-9].*", text):
        return "it has leading zeros, like a code: a column of strings keeps them"
    if re.fullmatch(r"-?[0-9.]+([eE][+-]?[0-9]+)?", text):
        return "it has digits that the type has no room for: a wider decimal or a string keeps them"
    if re.search(r"[\u20ac$%]", text):
        return "it has a sign of a currency or percent"
    return ""


def _of_time(text: str, kind: str) -> str:
    setting = "date_format" if kind == "date" else "timestamp_format"
    if re.fullmatch(r"\s*[0-9]{1,2}:[0-9]{2}(:[0-9]{2}.*)?", text):
        return "it is a time without a day: a column of strings keeps it"
    if re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        if re.search(r"\.[0-9]{6}0*[1-9]", text):
            return "it has more digits than microseconds: a column of strings keeps them"
        if kind == "date" and len(text) > 10:
            return "it has a time of day, too"
        return "its calendar or time zone has no such day or time, or has it twice"
    if re.match(r"[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{2,4}", text):
        return f"it may be another format: set {setting}, such as dd.MM.yyyy"
    if re.match(r"[0-9]{1,4}/[0-9]{1,2}/[0-9]{1,4}", text):
        return f"it may be another format: set {setting}, such as MM/dd/yyyy or dd/MM/yyyy"
    return ""
