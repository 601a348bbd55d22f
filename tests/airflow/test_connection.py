"""Connections of type Weir: each names an installation, and says whether it can be used."""

import json
from pathlib import Path
from typing import Any

import pytest
from airflow.providers_manager import ProvidersManager
from airflow.sdk.providers_manager_runtime import ProvidersManagerTaskRuntime
from fastapi.testclient import TestClient

import weir
from tests.conftest import TestDatabase
from tests.crash.jobs import write_config
from tests.raises import raises
from weir.airflow.connection import WeirHook, settings_of
from weir.airflow.provider import get_provider_info
from weir.model.names import shortened
from weir.pages.app import Access, create_app
from weir.settings import Settings


def given(patch: pytest.MonkeyPatch, name: str = "shop", **fields: Any) -> WeirHook:
    patch.setenv(f"AIRFLOW_CONN_{name.upper()}", json.dumps({"conn_type": "weir", **fields}))
    return WeirHook(name)


def test_airflow_finds_the_provider_in_the_source_tree_with_its_form() -> None:
    manager = ProvidersManager()
    assert manager.providers["weir-streams"].version == weir.__version__
    assert manager.hooks["weir"].connection_testable
    info: Any = get_provider_info()
    fields = info["connection-types"][0]["conn-fields"]
    assert {f"extra__weir__{name}" for name in fields} < set(manager.connection_form_widgets)
    assert ProvidersManagerTaskRuntime().hooks["weir"].hook_name == "Weir"


def test_a_connection_has_the_address_and_the_warehouse_and_the_environment_does_not_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WEIR_WAREHOUSE", "/elsewhere")
    hook = given(
        monkeypatch, host="db", port=6432, schema="weir", login="me", password="s@crt/",
        extra={"warehouse": str(tmp_path), "batch_events": 5, "config": ""},
    )  # fmt: skip
    settings = hook.settings()
    assert settings.database == "postgresql://me:s%40crt%2F@db:6432/weir"
    assert (settings.warehouse, settings.batch_events) == (str(tmp_path), 5)
    assert "crt" not in repr(settings)


def test_a_connection_may_name_a_file_on_the_workers(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write_config(settings)
    hook = given(monkeypatch, extra={"config": str(config), "grace_period": 7, "pack_after": 0})
    assert hook.settings().warehouse == settings.warehouse
    assert (hook.settings().grace_period, hook.settings().pack_after) == (7, 0)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"conn_type": "postgres", "host": "db"}, "setting_invalid type"),
        ({"host": "db"}, "argument_missing warehouse"),
        ({"extra": {"warehouse": "/w"}}, "argument_missing database"),
        ({"host": "db", "extra": {"warehouse": "/w", "colour": "red"}}, "setting_invalid colour"),
        ({"extra": {"config": "/no/such.toml"}}, "setting_invalid /no/such.toml"),
    ],
)
def test_a_connection_that_names_no_installation_is_refused(
    fields: dict[str, Any], code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = given(monkeypatch, **fields)
    with raises(code):
        hook.settings()
    ok, said = hook.test_connection()
    assert (ok, code.split()[0] in said) == (False, True)


# A secrets backend asks its store for whatever a browser says.
@pytest.mark.parametrize(
    "name", ["nowhere", "a\0b", "x" * 1_000, "../weir_default", "\x1b[2J", "ä"]
)
def test_a_connection_that_does_not_exist_is_one_sentence_that_names_it(name: str) -> None:
    with raises("airflow_not_found connection"):
        settings_of(name)
    ok, sentence = WeirHook(name).test_connection()
    assert (ok, shortened(name) in sentence) == (False, True)
    app = create_app(Access(settings_of, anybody, anybody, anybody, anybody))
    for address in ("/api/streams", "/api/stores", "/api/runs"):
        answer = TestClient(app).get(address, params={"conn_id": name})
        said = (404, "airflow_not_found") if "\0" not in name else (400, "argument_invalid")
        assert (answer.status_code, answer.json()["error"]["code"]) == said
        assert "content-security-policy" in answer.headers


def anybody() -> None:
    """Let everybody pass."""


def test_the_button_says_what_was_found(
    settings: Settings, test_database: TestDatabase, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    extra: dict[str, Any] = {"database": settings.database, "warehouse": settings.warehouse}
    ok, said = given(monkeypatch, extra=extra).test_connection()
    assert ok, said
    for what in ("database: Postgres", "layout", "rights:", f"warehouse: {settings.warehouse}"):
        assert what in said
    # For which jobs would wait longer than a test may take.
    extra |= {"database": "host=127.0.0.1 port=1", "connect_patience": 100_000}
    ok, said = given(monkeypatch, extra=extra).test_connection()
    assert not ok
    assert "database:" in said


def test_without_a_connection_the_settings_are_those_of_jobs(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIR_CONFIG", str(write_config(settings)))
    assert settings_of("").warehouse == settings.warehouse
