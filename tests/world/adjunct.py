"""Adjunct stores over streams of invented files: what builders do, without Spark."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tests.world.streams import Lane, rows, run, unique
from weir.adjunct.builds import Build, Running, begin_build
from weir.adjunct.publication import Built, publish_build
from weir.adjunct.stores import AdjunctStore, define_store, read_store, update_store
from weir.adjunct.versions import AdjunctVersion, History, find_version, history_since
from weir.database.connection import Database
from weir.model.adjunct_configuration import AdjunctConfiguration, AdjunctDefinition
from weir.model.schema import Field, new_field
from weir.queries.adjunct.versions import AdjunctFile

LEASE = 60.0
FIELDS: list[Field] = [{**new_field("_weir_key", "string"), "nullable": False}]
_KEYS = asdict(AdjunctDefinition()).keys()


@dataclass
class Store:
    """A store, and short ways to do to it what jobs do."""

    database: Database
    name: str
    lane: Lane

    @classmethod
    def made(cls, lane: Lane, *, time_out: int | None = None, **options: Any) -> "Store":
        name = f"test/{unique('store')}"
        definition = {key: options.pop(key) for key in list(options) if key in _KEYS}
        define_store(
            lane.database, name, lane.name, AdjunctConfiguration(**options),
            AdjunctDefinition(**definition), time_out=time_out, request_id=unique("define"),
        )  # fmt: skip
        return cls(lane.database, name, lane)

    @property
    def row(self) -> AdjunctStore:
        return self.database.transaction(lambda c: read_store(c, self.name))

    def update(self, **changes: Any) -> Mapping[str, Any]:
        redefined = {key: changes.pop(key) for key in list(changes) if key in _KEYS}
        return update_store(
            self.database, self.name, changes, redefined, request_id=unique("update")
        )

    def begin(self, builder: str = "builder", **how: Any) -> Build | Running | AdjunctVersion:
        return begin_build(self.database, self.name, builder=builder, lease=LEASE, **how)

    def begun(self, builder: str = "builder", **how: Any) -> Build:
        """Begin a build that is known to be the builder's, and return it."""
        build = self.begin(builder, **how)
        assert isinstance(build, Build), build
        return build

    def built(self, build: Build, **what: Any) -> Built:
        """Return a result of a build with one invented file, and a history of one file if the store
        keeps one."""
        file = AdjunctFile(f"{build.folder}table/part.parquet", 10, 100, 0, 1 << 52)
        keeps = build.store.configuration.history is not None
        history = [file._replace(path=f"{build.folder}history/part.parquet")] if keeps else None
        return Built(
            **{
                "fields": FIELDS, "files": [file], "kept": [], "history": history, "events": 1,
                "upserts": 1, "deletes": 0, "null_keys": 0, "failed_rows": 0, **what,
            }
        )  # fmt: skip

    def publish(self, build: Build, **what: Any) -> AdjunctVersion:
        """Publish what `built` invents."""
        return publish_build(self.database, build, self.built(build, **what))

    def build(self, builder: str = "builder", **how: Any) -> AdjunctVersion:
        return self.publish(self.begun(builder, **how))

    def find(self, cut: Mapping[str, int | str], clock: int | None = None) -> AdjunctVersion | None:
        store_id = self.row.store_id
        return self.database.snapshot(lambda c: find_version(c, store_id, {**cut}, clock))

    def newest(self) -> AdjunctVersion | None:
        return self.database.transaction(lambda c: find_version(c, self.row.store_id))

    def history(self, version: AdjunctVersion, clock: int) -> History:
        return self.database.transaction(lambda c: history_since(c, version, clock))

    def lapse(self, ago: float = 0.0) -> None:
        """Let the lease of the builder run out, some seconds ago, as if it had died."""
        run(
            self.database,
            "UPDATE adjunct_version SET lease_until = now() - :ago * interval '1 second' "
            "WHERE store_id = :a AND state = :b",
            a=self.row.store_id, b="building", ago=ago,
        )  # fmt: skip

    def rows(self, sql: str, **parameters: Any) -> list[Any]:
        """Return the rows of a query that names the store `:a`."""
        return rows(self.database, sql, a=self.row.store_id, **parameters)
