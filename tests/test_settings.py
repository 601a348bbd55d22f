"""What weir.toml and the variables say is what holds, or is refused by name."""

import re
from pathlib import Path

import pytest

from tests.compose_file import EXAMPLE
from tests.raises import raises
from weir.errors import InvalidInput
from weir.settings import Settings, load


def loaded(tmp_path: Path, toml: str, **variables: str) -> Settings:
    (tmp_path / "weir.toml").write_text(toml)
    return load({"WEIR_CONFIG": str(tmp_path / "weir.toml"), **variables})


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ("grace_perod = 1", "has an unknown setting 'grace_perod': did you mean 'grace_period'."),
        ("input_root = ['x']", "unknown setting 'input_root': did you mean 'input_roots'."),
        ("colour = 'red'", "has an unknown setting 'colour'."),
        ("function_packages = 'shop'", "'function_packages' is 'shop'; it must be a list of texts"),
        ("function_packages = [1]", "'function_packages' is [1]; it must be a list of texts"),
        ("warehouse = ['/data']", "'warehouse' is ['/data']; it must be a text"),
        ("batch_events = 1.5", "'batch_events' is 1.5; it must be a whole number"),
        ("batch_events = '10'", "'batch_events' is '10'; it must be a whole number"),
        ("grace_period = true", "'grace_period' is True; it must be a number"),
        ("grace_period = nan", "'grace_period' is nan; it must be a number"),
        ("grace_period = -1", "'grace_period' is -1; it must be a number that is not negative"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(tmp_path: Path, toml: str, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        loaded(tmp_path, toml)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "value", "said"),
    [
        (
            "WEIR_GRACE_PEROD",
            "0",
            "WEIR_GRACE_PEROD is not a setting: did you mean 'WEIR_GRACE_PERIOD'",
        ),
        ("WEIR_INPUT_ROOT", "/x", "is not a setting: did you mean 'WEIR_INPUT_ROOTS'"),
        ("WEIR_GRACE_PERIOD", "an hour", "'WEIR_GRACE_PERIOD' is 'an hour'; it must be a number"),
        ("WEIR_GRACE_PERIOD", "inf", "'WEIR_GRACE_PERIOD' is 'inf'; it must be a number"),
        ("WEIR_BATCH_FILES", "1.5", "'WEIR_BATCH_FILES' is '1.5'; it must be a whole number"),
    ],
)
def test_a_wrong_variable_is_refused_by_name(
    tmp_path: Path, variable: str, value: str, said: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        loaded(tmp_path, "", **{variable: value})
    assert said in str(caught.value)


def test_a_file_of_settings_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    with raises("config_invalid weir.toml TOML"):
        loaded(tmp_path, "grace_period = ")
    with raises("config_invalid other.toml file"):
        load({"WEIR_CONFIG": str(tmp_path / "other.toml")})


def test_a_variable_comes_before_the_file(tmp_path: Path) -> None:
    toml = "grace_period = 5\nbatch_files = 7\nfunction_packages = ['a', 'b']"
    settings = loaded(tmp_path, toml, WEIR_BATCH_FILES="9", WEIR_FUNCTION_PATH="/x, /y")
    assert (settings.grace_period, settings.batch_files) == (5.0, 9)
    assert settings.function_packages == ("a", "b")
    assert settings.function_path == ("/x", "/y")


def test_no_connection_string_is_quoted(tmp_path: Path) -> None:
    with raises("setting_invalid 'database'") as no:
        loaded(tmp_path, "database = ['postgresql://weir_app:s3cret@db/weir']")
    assert "s3cret" not in str(no.value)


@pytest.mark.parametrize("name", ["warehouse", "input_roots", "output_roots"])
def test_no_place_holds_a_password(tmp_path: Path, name: str) -> None:
    place = "s3a://key:topsecret@bucket/x"
    with raises("setting_invalid password Hadoop") as caught:
        loaded(tmp_path, f"{name} = {place!r}" if name == "warehouse" else f"{name} = [{place!r}]")
    assert "topsecret" not in caught.value.sentence
    account = "abfss://container@account.dfs.core.windows.net/x"
    assert loaded(tmp_path, f"warehouse = '{account}'").warehouse == account


def test_variables_of_a_deployment_are_no_mistakes(tmp_path: Path) -> None:
    named = re.findall(r"^#?(WEIR_\w+)=(.*)$", EXAMPLE, re.M)
    assert len(named) > 10
    assert loaded(tmp_path, "", WEIR_SOAK_SEED="1", WEIR_STACK_ID="x", **dict(named))


def test_a_program_finds_the_file_above_its_folder_as_commands_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "weir.toml").write_text("batch_files = 7")
    (tmp_path / "below" / "it").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "below" / "it")
    found = load({})
    assert (found.batch_files, found.state) == (7, tmp_path / ".weir")
