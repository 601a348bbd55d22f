"""Move the head of a stream and write the receipt of what went: which offsets, by which rule, and
which subscribers had released it, when and by which runs. Receipts are kept as long as the stream.
"""

import json
from collections.abc import Mapping

from sqlalchemy import Connection

from weir.controller.locks import LockedStream
from weir.controller.truncation import move_head
from weir.model.stream_cut import StreamCut
from weir.queries.controller.truncation import Freed
from weir.queries.retention import receipts as sql


def truncate_at(
    connection: Connection,
    stream: LockedStream,
    cut: StreamCut,
    *,
    rule: str,
    reason: str,
    lost: Mapping[str, int],
    request_id: str | None = None,
) -> Freed:
    """Move the head of a stream to a checked cut, write the receipt, and return what was truncated.

    The stream and its groups are locked. `rule` and `reason`: who or what truncates. `lost`: by
    name, how many of these events each group had not read. `request_id`: of a truncation by hand.
    """
    freed = move_head(connection, stream, cut)
    sql.write(
        connection,
        stream_id=stream.stream_id,
        stream=str(stream.name),
        old=json.dumps(stream.head),
        cut=json.dumps(cut.to_json()),
        rule=rule,
        reason=reason,
        lost=json.dumps(lost),
        request_id=request_id,
        **freed._asdict(),
    )
    return freed
