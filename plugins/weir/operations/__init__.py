"""Describe the arguments of each job once, for its form in the UI and its own check, and run jobs.

Imports neither pyspark nor airflow: `weir.airflow` makes `Param`s of the descriptions, and the jobs
parse with them.
"""

from typing import Any

from weir.model.names import FUNCTION_PATTERN
from weir.operations.adjunct import (
    Adjunct,
    DefineAdjunctStore,
    DeleteAdjunctStore,
    UpdateAdjunctStore,
)
from weir.operations.form import form_schema, is_required, parse
from weir.operations.reader_groups import (
    CheckpointReaderGroup,
    CreateReaderGroup,
    DeleteReaderGroup,
    ForkReaderGroup,
    ReaderOffline,
    ReleaseReaderGroup,
    ResetReaderGroup,
    UpdateReaderGroup,
)
from weir.operations.runs import (
    Apply,
    Checkpoints,
    Ingest,
    Process,
    PutBack,
    Recover,
    Retention,
    Scale,
    StreamCuts,
    Upkeep,
)
from weir.operations.stream_ends import DeleteStream, SealStream, TruncateStream
from weir.operations.streams import BackTest, CreateStream, ScaleStream, UpdateStream

__all__ = [
    "FUNCTION_PATTERN",
    "JOBS",
    "Adjunct",
    "Apply",
    "BackTest",
    "CheckpointReaderGroup",
    "Checkpoints",
    "CreateReaderGroup",
    "CreateStream",
    "DefineAdjunctStore",
    "DeleteAdjunctStore",
    "DeleteReaderGroup",
    "DeleteStream",
    "ForkReaderGroup",
    "Ingest",
    "Process",
    "PutBack",
    "ReaderOffline",
    "Recover",
    "ReleaseReaderGroup",
    "ResetReaderGroup",
    "Retention",
    "Scale",
    "ScaleStream",
    "SealStream",
    "StreamCuts",
    "TruncateStream",
    "UpdateAdjunctStore",
    "UpdateReaderGroup",
    "UpdateStream",
    "Upkeep",
    "form_schema",
    "is_required",
    "parse",
]

JOBS: dict[str, type[Any]] = {
    "create_stream": CreateStream,
    "scale_stream": ScaleStream,
    "update_stream": UpdateStream,
    "back_test": BackTest,
    "truncate_stream": TruncateStream,
    "seal_stream": SealStream,
    "delete_stream": DeleteStream,
    "create_reader_group": CreateReaderGroup,
    "update_reader_group": UpdateReaderGroup,
    "reset_reader_group": ResetReaderGroup,
    "fork_reader_group": ForkReaderGroup,
    "release_reader_group": ReleaseReaderGroup,
    "delete_reader_group": DeleteReaderGroup,
    "reader_offline": ReaderOffline,
    "checkpoint_reader_group": CheckpointReaderGroup,
    "define_adjunct_store": DefineAdjunctStore,
    "update_adjunct_store": UpdateAdjunctStore,
    "delete_adjunct_store": DeleteAdjunctStore,
    "adjunct": Adjunct,
    "apply": Apply,
    "ingest": Ingest,
    "process": Process,
    "put_back": PutBack,
    "stream_cuts": StreamCuts,
    "checkpoints": Checkpoints,
    "scale": Scale,
    "retention": Retention,
    "upkeep": Upkeep,
    "recover": Recover,
}
