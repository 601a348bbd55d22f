"""Columns that people declare are what Spark's own parser makes of them."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from tests.chance import cases, random_for
from weir.model.declared_columns import declared_columns


@pytest.mark.random
def test_declared_columns_are_what_sparks_parser_makes_of_them(spark: SparkSession) -> None:
    random = random_for("declared columns")
    names = ["BOOLEAN", "tinyint", "SmallInt", "INT", "integer", "BIGINT", "long", "FLOAT", "real",
             "DOUBLE", "DATE", "TIMESTAMP", "timestamp_ntz", "timestamp_ltz", "STRING", "binary",
             "VARIANT", "DECIMAL", "dec(7)", "numeric( 38 , 10 )", "decimal(3,3)"]  # fmt: skip

    def kind(depth: int) -> str:
        choice = random.randrange(8 if depth < 3 else 5)
        if choice < 5:
            return random.choice(names)
        if choice == 5:
            return f"ARRAY<{kind(depth + 1)}>"
        if choice == 6:
            return f"map < STRING,{kind(depth + 1)} >"
        return "STRUCT<" + ", ".join(field(i, depth + 1) for i in range(3)) + ">"

    def field(number: int, depth: int) -> str:
        name = random.choice([f"c{number}", f"`c.{number} ``x`", f"{number}x", f"date{number}"])
        colon = random.choice([" ", ": ", ":"]) if depth else " "
        comment = random.choice(["", "", " COMMENT 'it\\'s \\\\ \\n so'", ' comment "a b"'])
        return f"{name}{colon}{kind(depth)}{comment}"

    for _ in range(cases(400)):
        text = ",\n".join(field(i, 0) for i in range(1, 4))
        expected = StructType.fromDDL(text)
        assert isinstance(expected, StructType)
        assert declared_columns(text) == expected.jsonValue()["fields"], text
