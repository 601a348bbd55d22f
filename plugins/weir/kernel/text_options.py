"""How text files are written: what separates and quotes their values, and how numbers and times
look in them."""

import codecs
import zoneinfo
from dataclasses import dataclass, fields

from weir.errors import InvalidInput
from weir.front_ends import called
from weir.model.names import shortened

# The encodings by Python's names, with Java's. Java and Python agree on each byte of these.
ENCODINGS = {
    "utf-8": "UTF-8", "utf-16": "UTF-16", "utf-16-le": "UTF-16LE", "utf-16-be": "UTF-16BE",
    "iso8859-1": "ISO-8859-1", "iso8859-2": "ISO-8859-2", "iso8859-5": "ISO-8859-5",
    "iso8859-7": "ISO-8859-7", "iso8859-9": "ISO-8859-9", "iso8859-15": "ISO-8859-15",
    "ascii": "US-ASCII", "koi8-r": "KOI8-R", "cp437": "IBM437", "cp850": "IBM850",
    "cp852": "IBM852", "cp1250": "windows-1250", "cp1251": "windows-1251",
    "cp1252": "windows-1252", "cp1253": "windows-1253", "cp1254": "windows-1254",
    "cp1257": "windows-1257", "shift_jis": "Shift_JIS", "euc_jp": "EUC-JP", "euc_kr": "EUC-KR",
    "gb18030": "GB18030", "big5": "Big5",
}  # fmt: skip
_CHARACTERS = ("separator", "quote", "escape", "comment", "decimal", "thousands")
_NONE = "none"


@dataclass(frozen=True)
class TextOptions:
    """The options of csv files, as a form has them. The zone and the formats hold for json, too."""

    separator: str = ","
    null_value: str = ""
    quote: str = '"'
    escape: str = ""  # the character before a quote within quotes; empty: the quote itself
    comment: str = ""
    skip_lines: int = 0
    header: bool = True
    encoding: str = "utf-8"
    decimal: str = "."
    thousands: str = ""
    date_format: str = ""
    timestamp_format: str = ""
    time_zone: str = "UTC"

    def __post_init__(self) -> None:
        """Check each option, and that no character has two meanings."""
        tab = "\t" if self.separator == r"\t" else self.separator
        object.__setattr__(self, "separator", tab)
        for name in ("quote", "escape", "comment", "thousands"):
            if getattr(self, name) == _NONE:
                object.__setattr__(self, name, "")
        object.__setattr__(self, "encoding", _encoding(self.encoding))
        for name in _CHARACTERS:
            value = getattr(self, name)
            optional = name not in ("separator", "decimal")
            if not (len(value) == 1 or (optional and value == "")) or value in ("\r", "\n", "\0"):
                raise _wrong(name, value, "one character" + (", or none" if optional else
                             r", or \t for a tab" if name == "separator" else ""))  # fmt: skip
        if self.decimal not in ".,":
            raise _wrong("decimal", self.decimal, "a full stop or a comma")
        if self.thousands.isalnum() or self.thousands in ("+", "-"):
            raise _wrong("thousands", self.thousands, "a character that numbers do not have")
        roles = ("separator", "quote", "comment"), ("decimal", "thousands")
        for names in roles:
            seen: dict[str, str] = {}
            for name in names:
                value = getattr(self, name)
                if value and value in seen:
                    raise InvalidInput(
                        "argument_invalid",
                        f"{called(seen[value])} and {called(name)} are both {value!r}; give two "
                        "characters.",
                    )
                seen[value] = name
        if self.skip_lines < 0 or self.skip_lines > 10_000:
            raise _wrong("skip_lines", str(self.skip_lines), "from 0 to 10,000")
        if self.time_zone not in zoneinfo.available_timezones():
            raise _wrong("time_zone", self.time_zone, "a name such as UTC or Europe/Berlin")

    @property
    def changed(self) -> dict[str, object]:
        """Return the options that are not the defaults. They belong to what identifies an append,
        because they change what is read."""
        return {
            f.name: value for f in fields(self) if (value := getattr(self, f.name)) != f.default
        }

    @property
    def wide(self) -> bool:
        """Return whether characters of the encoding have more than a byte each, so that a byte that
        looks like a newline may be a part of one."""
        return self.encoding.startswith("utf-16")


def _encoding(given: str) -> str:
    try:
        name = codecs.lookup("utf-8" if given.lower() == "utf-8-sig" else given).name
    except (LookupError, ValueError):
        name = ""
    if name not in ENCODINGS:
        raise _wrong("encoding", given, f"one of {', '.join(ENCODINGS.values())}")
    return name


def _wrong(name: str, value: str, wanted: str) -> InvalidInput:
    return InvalidInput(
        "argument_invalid",
        f"{called(name)} is {shortened(value)}; it must be {wanted}.",
    )
