"""What texts of csv files become, whatever reads them."""

from typing import Any

# Columns of a csv file: the type that is taken, and the texts. Each must come back.
GUESSED = {
    "seat": ("string", ["12D", "3F", "1"]),
    "version": ("string", ["3.10", "3.9", "3.8"]),
    "clock": ("string", ["08:15", "23:59", "00:00"]),
    "code": ("string", ["00501", "10001", "2134"]),
    "phone": ("string", ["+4915", "4916", "4917"]),
    "spaced": ("string", [" 5", "6", "7"]),
    "grouped": ("string", ["1_000", "2", "3"]),
    "hexadecimal": ("string", ["0x1F", "2", "3"]),
    "exponent": ("string", ["1e5", "12e3", "4"]),
    "minus_zero": ("string", ["-0", "1", "2"]),
    "two_ways": ("string", ["3", "3.0", "4.5"]),
    "shouted": ("string", ["TRUE", "FALSE", "TRUE"]),
    "said": ("string", ["yes", "no", "yes"]),
    "none": ("string", ["NA", "1", "2"]),
    "null": ("string", ["null", "1", "2"]),
    "digits": ("string", ["9007199254740993.5", "0.1", "2"]),
    "no_day": ("string", ["2026-02-30", "2026-02-28", "2026-03-01"]),
    "far_day": ("string", ["10000-01-01", "2026-01-01", "2026-01-02"]),
    "other_day": ("string", ["02.01.2026", "03.01.2026", "04.01.2026"]),
    "offset": ("string", ["2026-01-01T00:00:00+02:00"] * 3),
    "nanoseconds": ("string", ["2026-01-01T00:00:00.123456789Z"] * 3),
    "leap": ("string", ["2016-12-31 23:59:60", "2016-12-31 23:59:59", "2017-01-01 00:00:00"]),
    "ways": ("string", ["2026-01-01 00:00:00", "2026-01-01T00:00:01", "2026-01-01 00:00:02"]),
    "fractions": ("string", ["2026-01-01 00:00:00.10", "2026-01-01 00:00:01.1",
        "2026-01-01 00:00:02"]),
    "suffix": ("string", ["1.5f", "2d", "3L"]),
    "whole": ("long", ["1", "-20", "9223372036854775807"]),
    "longer": ("decimal(38,0)", ["12345678901234567890", "1", "-5"]),
    "price": ("decimal(18,2)", ["1.50", "-0.05", "1000.00"]),
    "fine": ("decimal(38,20)", ["0.12345678901234567890", "1.00000000000000000000",
        "2.00000000000000000001"]),
    "measure": ("double", ["1.5", "0.1", "-2.25"]),
    "counted": ("double", ["1", "0.5", "-2"]),
    "python": ("double", ["0.30000000000000004", "1e-05", "1.5e+300"]),
    "java": ("double", ["1.0E-5", "0.1", "NaN"]),
    "flag": ("boolean", ["true", "false", "true"]),
    "day": ("date", ["2026-02-28", "0001-01-01", "9999-12-31"]),
    "at": ("timestamp", ["2026-01-01 00:00:00", "2026-03-29 02:30:00", "1899-01-01 12:00:00"]),
    "utc": ("timestamp", ["2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.120Z",
        "2026-01-01T00:00:00.123Z"]),
    "minutes": ("timestamp", ["2026-01-01 08:15", "2026-01-01 08:16", "2026-01-02 00:00"]),
}  # fmt: skip

DECLARED: list[dict[str, Any]] = [
    {"name": name, "type": kind, "nullable": True, "metadata": {}}
    for name, kind in [("k", "string"), ("v", "double"), ("f", "float"), ("p", "decimal(10,2)"),
                       ("at", "timestamp"), ("here", "timestamp_ntz"), ("day", "date"),
                       ("flag", "boolean"), ("i", "integer")]
]  # fmt: skip
# Texts that the declared types do not keep.
NOT_KEPT = {
    "v": ["9007199254740993", "0.1234567890123456789", "1e400", "1d", "1,5"],
    "f": ["16777217", "0.123456789"],
    "p": ["1.005", "123456789.00", "01.5", "1.234,50"],
    "at": ["08:15", "2026-01-01T00:00:00.1234567Z", "2016-12-31 23:59:60", "01.02.2026"],
    "here": ["2026-01-01T00:00:00Z", "2026-01-01 00:00:00.0000001"],
    "day": ["2026-01-01 00:00:00", "2026-1-1", "2026-02-30", "02/01/2026"],
    "flag": ["yes", "1"],
    "i": ["2147483648", "1.0"],
}
