"""DataFrames, alone and several in one transaction, follow a stream's setting for new columns
(semantics 12.4)."""

from pathlib import Path

import pytest

from tests.raises import raises
from tests.spark.installation import Installation
from tests.world.columns import column
from weir.controller.transactions import Committed
from weir.model.names import StreamName
from weir.spark.appends.transaction import transaction


def test_a_dataframe_is_refused_for_new_columns_or_adds_them_with_a_word(
    weir: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    fields = [column("k", "string"), column("amount", "long")]
    frame = weir.spark.createDataFrame([("a", 1)], "k string, amuont long")
    strict = weir.create("s/strict", segments=1, fields=fields)
    grows = weir.create("s/grows", segments=1, fields=fields, on_new_column="add")

    def in_transaction(stream: StreamName) -> Committed:
        with transaction(weir.appender, writer_id="w", batch_id=str(stream)) as both:
            both.append(stream, frame)
        return both.committed[0]

    with raises("column_unknown 'amuont' s/strict 'amount' on_new_column"):
        in_transaction(strict)
    (Path(weir.input) / "x.csv").write_text("k,amuont\na,1\n")
    with raises("column_unknown 'amuont' amuont -> amount"):  # of files, which may be called so
        weir.ingest(strict, ["x.csv"], "csv")
    assert weir.frame(strict).collect() == []
    done = in_transaction(grows)
    assert (done.added_columns, done.missing_columns) == (("amuont",), ("amount",))
    [warned] = [one.getMessage() for one in caplog.records if one.name == "weir.columns"][:1]
    assert "is it a misspelt 'amount'" in warned
    assert weir.append(grows, frame).added_columns == ()
    assert weir.frame(grows).select("k", "amount", "amuont").collect() == [("a", None, 1)] * 2
