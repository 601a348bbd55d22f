"""A file of a store's version that a look-up can't read is told with its cause and what to do."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.raises import raises
from tests.world.adjunct import Store
from tests.world.streams import Lane
from weir.adjunct import lookup
from weir.adjunct.lookup import key_text, look_up
from weir.controller.ownership import read_installation
from weir.database.connection import Database
from weir.model.key_space import routing_steps
from weir.programs.opening import shared
from weir.queries.adjunct.versions import AdjunctFile
from weir.settings import Settings
from weir.warehouse.marker import Marker, write_marker


@pytest.fixture
def store(database: Database, settings: Settings) -> Store:
    write_marker(settings.warehouse, Marker(read_installation(database).installation_id))
    return Store.made(Lane.made(database, name="iot/small", segments=1))


def publish(store: Store, settings: Settings) -> Path:
    """Publish a version with the keys a and b in one real file, and return the file."""
    build = store.begun()
    keys = sorted(["a", "b"], key=lambda key: routing_steps(key_text(key).encode()))
    hashes = [routing_steps(key.encode()) for key in keys]
    table = pa.table({"_weir_key": keys, "_weir_hash": hashes, "_weir_clock": [7, 8]})
    path = f"{build.folder}table/part.parquet"
    file = Path(settings.warehouse, path)
    file.parent.mkdir(parents=True)
    pq.write_table(table, file)
    size = file.stat().st_size
    store.publish(build, files=[AdjunctFile(path, 2, size, hashes[0], hashes[-1])])
    return file


def test_a_file_that_is_missing_or_damaged_is_told_by_a_look_up(
    store: Store, settings: Settings
) -> None:
    file = publish(store, settings)

    def look() -> Any:
        return look_up(store.database, settings.warehouse, store.name, "a")

    assert look()["_clock"] in (7, 8)
    content = file.read_bytes()
    damages: list[tuple[Callable[[], Any], str]] = [
        (file.unlink, "missing"), (lambda: file.write_bytes(content[:20]), "damaged"),
        (lambda: file.write_bytes(b""), "damaged"),
        (lambda: file.write_bytes(b"x" * len(content)), "damaged"),
    ]  # fmt: skip
    for harm, state in damages:
        harm()
        with raises(f"file_missing {store.name} {state}") as lost:
            look()
        assert not lost.value.retryable
        assert "define the store anew" in lost.value.sentence
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content)
    file.write_bytes(content[:4] + b"\xff" * (len(content) - 12) + content[-8:])
    with raises("warehouse_unreadable stays damaged"):  # pyarrow says the same of a storage
        look()
    file.write_bytes(content)
    assert look()["_clock"] in (7, 8)


def test_a_look_up_in_another_warehouse_says_so(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    rows = pa.table({"key": ["a"]})
    shared(settings).append("iot/small", rows, writer_id="w", batch_id="b")
    file = publish(store, settings)
    relative = file.relative_to(settings.warehouse)
    copy = tmp_path / "copy"
    shutil.copytree(settings.warehouse, copy)
    assert look_up(store.database, str(copy), store.name, "a") is not None, "as far as it is there"
    (copy / relative).unlink()
    with raises("warehouse_elsewhere copy"):
        look_up(store.database, str(copy), store.name, "a")
    (tmp_path / "none").mkdir()
    with raises("warehouse_not_owned"):
        look_up(store.database, str(tmp_path / "none"), store.name, "a")


def test_a_version_that_is_swept_between_the_plan_and_the_look_up_says_so(
    store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = publish(store, settings)
    planned = lookup._version

    def then_swept(*given: Any) -> Any:
        found = planned(*given)
        run = "DELETE FROM adjunct_version_file WHERE store_id = :a RETURNING 1"
        store.rows(run)
        store.rows("DELETE FROM adjunct_file WHERE store_id = :a RETURNING 1")
        file.unlink()
        return found

    monkeypatch.setattr(lookup, "_version", then_swept)
    with raises("file_swept replaced read again"):
        look_up(store.database, settings.warehouse, store.name, "a")


def test_a_storage_that_is_away_can_be_tried_again(store: Store, settings: Settings) -> None:
    file = publish(store, settings)
    marker = Path(settings.warehouse, "_weir_installation")
    file.unlink()
    marker.unlink()
    marker.symlink_to("/proc/self/mem")  # whose first byte nobody can read
    with raises("warehouse_unreadable try again") as away:
        look_up(store.database, settings.warehouse, store.name, "a")
    assert away.value.retryable
