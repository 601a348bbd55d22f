"""What a file declares."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from weir.annex.declarations.columns import DeclaredColumns
from weir.model.stream_configuration import Configuration
from weir.operations.asked import AskedGroup, AskedStore


@dataclass(frozen=True)
class DeclaredStream:
    """A stream as it is to be. `segments` are those to begin with."""

    configuration: Configuration
    segments: int
    columns: DeclaredColumns


@dataclass(frozen=True)
class Declared:
    """What a file declares, by name. A consumer has the name of its group, and the arguments of
    `weir_process` that it sets."""

    streams: Mapping[str, DeclaredStream] = field(default_factory=dict)
    stores: Mapping[str, AskedStore] = field(default_factory=dict)
    groups: Mapping[str, AskedGroup] = field(default_factory=dict)
    consumers: Mapping[str, dict[str, object]] = field(default_factory=dict)
