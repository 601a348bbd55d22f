"""What weir.toml and the variables say is what holds, or is refused by name."""

import re
from pathlib import Path

import pytest

from tests.compose_file import EXAMPLE
from tests.raises import raises
from weir.settings import Settings, load


def loaded(tmp_path: Path, toml: str, **variables: str) -> Settings:
    (tmp_path / "weir.toml").write_text(toml)
    return load({"WEIR_CONFIG": str(tmp_path / "weir.toml"), **variables})


@pytest.mark.parametrize(
    ("given", "said"),  # in weir.toml, or as a variable
    [
        ("grace_perod = 1", "setting_invalid 'grace_perod' 'grace_period'"),
        ("input_root = ['x']", "setting_invalid 'input_root' 'input_roots'"),
        ("colour = 'red'", "setting_invalid 'colour'"),
        ("function_packages = 'shop'", "setting_invalid 'function_packages' 'shop' list"),
        ("function_packages = [1]", "setting_invalid 'function_packages' [1] list"),
        ("warehouse = ['/data']", "setting_invalid 'warehouse' ['/data'] text"),
        ("batch_events = 1.5", "setting_invalid 'batch_events' 1.5 whole"),
        ("batch_events = '10'", "setting_invalid 'batch_events' '10' whole"),
        ("grace_period = true", "setting_invalid 'grace_period' True number"),
        ("grace_period = nan", "setting_invalid 'grace_period' nan number"),
        ("grace_period = -1", "setting_invalid 'grace_period' -1 negative"),
        ("WEIR_GRACE_PEROD=0", "setting_invalid WEIR_GRACE_PEROD 'WEIR_GRACE_PERIOD'"),
        ("WEIR_INPUT_ROOT=/x", "setting_invalid WEIR_INPUT_ROOT 'WEIR_INPUT_ROOTS'"),
        ("WEIR_GRACE_PERIOD=an hour", "setting_invalid 'WEIR_GRACE_PERIOD' 'an hour' number"),
        ("WEIR_GRACE_PERIOD=inf", "setting_invalid 'WEIR_GRACE_PERIOD' 'inf' number"),
        ("spark = 'localhost:15002'", "setting_invalid 'spark' sc://host:15002"),
        ("WEIR_SPARK=sc://host:port", "setting_invalid 'spark' sc://host:15002"),
        ("WEIR_BATCH_FILES=1.5", "setting_invalid 'WEIR_BATCH_FILES' '1.5' whole"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(tmp_path: Path, given: str, said: str) -> None:
    variable, _, value = given.partition("=")
    with raises(said):
        if variable.startswith("WEIR_"):
            loaded(tmp_path, "", **{variable: value})
        else:
            loaded(tmp_path, given)


def test_a_file_of_settings_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    with raises("setting_invalid weir.toml TOML"):
        loaded(tmp_path, "grace_period = ")
    with raises("setting_invalid other.toml file"):
        load({"WEIR_CONFIG": str(tmp_path / "other.toml")})


def test_a_variable_comes_before_the_file(tmp_path: Path) -> None:
    toml = "grace_period = 5\nbatch_files = 7\nfunction_packages = ['a', 'b']"
    settings = loaded(tmp_path, toml, WEIR_BATCH_FILES="9", WEIR_FUNCTION_PATH="/x, /y")
    assert (settings.grace_period, settings.batch_files) == (5.0, 9)
    assert settings.function_packages == ("a", "b")
    assert settings.function_path == ("/x", "/y")


@pytest.mark.parametrize(
    "given",
    [
        "database = ['postgresql://weir_app:s3cret@db/weir']",
        "metrics_token = ['s3cret']",
        "spark = ['sc://host/;token=s3cret']",
        "spark = 'sc://host/;token=s3cret=='",
    ],
)
def test_no_secret_is_quoted(tmp_path: Path, given: str) -> None:
    with raises(f"setting_invalid '{given.partition(' ')[0]}'") as no:
        loaded(tmp_path, given)
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


@pytest.mark.parametrize(
    "address", ["", "sc://host", "sc://10.0.0.1:15002", "sc://h:443/;use_ssl=true;token=secret"]
)
def test_the_address_of_spark_is_a_setting_that_nothing_shows(tmp_path: Path, address: str) -> None:
    settings = loaded(tmp_path, "", WEIR_SPARK=address)
    assert settings.spark == address
    assert not address or address not in repr(settings)
