"""docker-compose.yaml names only what exists. No container is started: there is no engine here."""

import configparser
import importlib.util
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import fields
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyspark
import pytest

from tests.compose_file import (
    COMPOSE,
    DOCKERFILE,
    ENTRY,
    EXAMPLE,
    FILE,
    IMAGE_FILES,
    PG_SERVICE,
    RAW,
    REPOSITORY,
    REQUIRED,
    SERVICES,
    VARIABLE,
)
from weir.local import binaries
from weir.local.logins import SERVICES as SERVICES_OF_LOGINS
from weir.local.ports import free_port
from weir.settings import Settings

pytestmark = pytest.mark.release

BESIDE = "weir-beside-spark"
AIRFLOW_SETTING = re.compile(r"AIRFLOW__[A-Z_]+?__[A-Z_]+")


def strings(value: Any) -> Iterator[str]:
    """All keys and values that are strings."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from (str(key), *strings(part))
    elif isinstance(value, list):
        for part in value:
            yield from strings(part)
    elif isinstance(value, str):
        yield value


def commands(service: dict[str, Any]) -> list[list[str]]:
    """What a service runs, its health check included; scripts of `sh -c` are taken apart."""
    given = [list(service.get("entrypoint", [])) + list(service.get("command", []))]
    if test := service.get("healthcheck", {}).get("test"):
        assert test[0] == "CMD", test
        given.append(test[1:])
    found = []
    for words in filter(None, given):
        if words[:2] == ["/bin/sh", "-c"]:
            for part in re.split(r"&&|;", words[2]):
                program = re.sub(r'^\s*\w+="\$\([^)]*\)"\s+exec ', "", part)
                found.append(shlex.split(program))
        elif words[0] == BESIDE:
            found += [words[:1], words[1:]]
        else:
            found.append(words)
    return found


ALL_COMMANDS = [(name, words) for name, one in SERVICES.items() for words in commands(one)]


def test_the_file_fits_the_compose_schema() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", FILE],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_services_wait_for_services_that_can_become_what_is_waited_for() -> None:
    for name, service in SERVICES.items():
        for other, how in service.get("depends_on", {}).items():
            target = SERVICES[other]
            if how["condition"] == "service_healthy":
                assert "healthcheck" in target, f"{name} waits for {other} for ever"
            elif how["condition"] == "service_completed_successfully":
                assert target.get("restart", "no") == "no", f"{other} never completes"
                assert "healthcheck" not in target


def test_every_lasting_service_restarts_and_has_a_health_check() -> None:
    once = {
        other
        for service in SERVICES.values()
        for other, how in service.get("depends_on", {}).items()
        if how["condition"] == "service_completed_successfully"
    }
    assert once == {"logins", "migrate", "airflow-init"}
    for name in set(SERVICES) - once:
        assert SERVICES[name]["restart"] == "unless-stopped", name
        assert "healthcheck" in SERVICES[name], name


def test_volumes_configs_and_secrets_are_declared_and_used() -> None:
    used: dict[str, set[str]] = {"volumes": set(), "configs": set(), "secrets": set()}
    for service in SERVICES.values():
        used["volumes"] |= {v.split(":")[0] for v in service.get("volumes", []) if v[0] not in "./"}
        used["configs"] |= {config["source"] for config in service.get("configs", [])}
        used["secrets"] |= set(service.get("secrets", []))
    for kind, names in used.items():
        assert names == set(COMPOSE[kind]), kind


def test_folders_of_the_host_exist_in_the_repository() -> None:
    binds = {v.split(":")[0] for one in SERVICES.values() for v in one.get("volumes", [])}
    binds = {source for source in binds if source[0] in "./"}
    assert binds == {"./dags", "./examples"}
    for source in binds:
        assert (REPOSITORY / source).is_dir(), source


def test_ports_are_unique_and_not_open_to_the_network() -> None:
    ports = [port for one in SERVICES.values() for port in one.get("ports", [])]
    assert all(port.startswith("127.0.0.1:") for port in ports), ports
    hosts = [port.rsplit(":", 1)[0] for port in ports]
    assert len(hosts) == len(set(hosts)) > 0


def test_no_container_gains_rights_or_changes_its_image() -> None:
    for name, one in SERVICES.items():
        assert one["read_only"] is True, name
        assert one["cap_drop"] == ["ALL"], name
        assert one["security_opt"] == ["no-new-privileges:true"], name
        assert name == "postgres" or "cap_add" not in one, name


def test_the_image_is_built_of_files_that_exist() -> None:
    sources = re.findall(r"^COPY (?!--)(\S+) \S+$", DOCKERFILE, re.M)
    assert {"requirements.txt", "plugins", "spark_jobs", "sql"} == set(sources)
    for source in sources:
        assert (REPOSITORY / source).exists(), source
    entry = re.search(r'^ENTRYPOINT \["(\S+)"\]$', DOCKERFILE, re.M)
    assert entry is not None
    assert f"/usr/local/bin/{entry[1]}" == ENTRY
    assert (REPOSITORY / "plugins/weir/local/spark-conf").is_dir()
    subprocess.run(["/bin/sh", "-n"], input=IMAGE_FILES[ENTRY], text=True, check=True)


def test_every_program_exists() -> None:
    wheel = binaries.wheel() / "bin"
    for name, words in ALL_COMMANDS:
        program = words[0]
        if "image" in SERVICES[name] and SERVICES[name]["image"].startswith("postgres:"):
            assert (wheel / program).is_file(), f"{name}: {words}"
        elif program == "curl":
            assert re.search(r"apt-get install .*\bcurl\b", DOCKERFILE)
        elif program != "test":
            written = f"/usr/local/bin/{program}" in IMAGE_FILES
            assert written or (Path(sys.executable).parent / program).is_file(), f"{name}: {words}"


def test_the_programs_of_the_image_can_be_read() -> None:
    for path, content in IMAGE_FILES.items():
        if content.startswith("#!/bin/sh"):
            subprocess.run(["/bin/sh", "-n"], input=content, text=True, check=True)
        else:
            assert content.startswith("#!/usr/bin/env python3")
            compile(content, path, "exec")


def test_old_logs_are_deleted_and_no_others(tmp_path: Path) -> None:
    script = IMAGE_FILES["/usr/local/bin/weir-clean-logs"]
    logs, scratch = tmp_path / "logs", tmp_path / "scratch"
    old, new = logs / "dag" / "old.log", logs / "other" / "new.log"
    left, held = scratch / "left" / "shuffle", scratch / "held"
    for path in (old, new, left, held / "shuffle"):
        path.parent.mkdir(parents=True)
        path.touch()
    for path in (old, left, left.parent, held):
        os.utime(path, (0, 0))
    here = script.replace("/opt/airflow/logs", str(logs)).replace("sleep 3600", "exit")
    here = here.replace("/srv/weir/scratch", str(scratch))
    subprocess.run(["/bin/sh", "-c", here, "sh", "30"], check=True)
    assert [path.name for path in logs.iterdir()] == ["other"]
    assert not left.exists()
    assert [path.name for path in held.iterdir()] == ["shuffle"]
    assert new.exists()


def test_a_heartbeat_that_the_api_server_calls_unhealthy_is() -> None:
    answer = {"triggerer": {"status": None}, "dag_processor": {"status": "healthy"}}
    said = json.dumps(answer).encode()

    class Health(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing of a request."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Health) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        here = f"http://127.0.0.1:{server.server_port}"
        script = IMAGE_FILES["/usr/local/bin/weir-healthy"].replace("http://api-server:8080", here)
        found = {
            name: subprocess.run([sys.executable, "-c", script, name]).returncode for name in answer
        }
        server.shutdown()
    assert found == {"triggerer": 1, "dag_processor": 0}


def test_what_runs_beside_spark_reaches_it_and_nobody_else_has_its_token() -> None:
    """Without a master: its own cores."""
    port = str(free_port())
    script = IMAGE_FILES[f"/usr/local/bin/{BESIDE}"].replace("15002", port)
    script = script.replace("spark://spark-master:7077", "local[1]")
    ask = """
import sys, time
from pyspark.errors import PySparkException
from weir.errors import Unavailable
from weir.spark.base.connect import connected, end
while True:
    try:
        spark = connected("sc://localhost:" + sys.argv[1], {})
        break
    except Unavailable:
        time.sleep(0.5)
assert spark.range(3).count() == 3
end(spark)
"""
    environ = {**os.environ, "PYTHONPATH": str(REPOSITORY / "plugins")}
    environ.pop("SPARK_CONNECT_AUTHENTICATE_TOKEN", None)
    beside = subprocess.Popen(
        ["/bin/sh", "-c", script, "sh", sys.executable, "-c", ask, port], env=environ,
        start_new_session=True,
    )  # fmt: skip
    try:
        assert beside.wait(timeout=300) == 0
    finally:
        os.killpg(beside.pid, signal.SIGKILL)


def test_a_container_has_limits() -> None:
    """A volume of logs, or the drivers of many tasks, may not take all there is."""
    for name, service in SERVICES.items():
        assert set(service["logging"]["options"]) == {"max-size", "max-file"}, name
    assert SERVICES["scheduler"]["mem_limit"] == "16g"
    tasks = int(SERVICES["scheduler"]["environment"]["AIRFLOW__CORE__PARALLELISM"])
    driver = int(SERVICES["scheduler"]["environment"]["SPARK_DRIVER_MEMORY"].removesuffix("g"))
    assert tasks * (driver + 0.6) + 2 <= 16


def test_nothing_of_a_deployment_is_sent_to_the_builder() -> None:
    rules = (REPOSITORY / ".dockerignore").read_text().split("\n")
    assert "*" in rules
    wanted = {rule.removeprefix("!") for rule in rules if rule.startswith("!")}
    assert wanted == {"requirements.txt", "plugins", "spark_jobs", "sql"}


def test_every_login_has_a_service_and_its_database() -> None:
    found = configparser.ConfigParser()
    found.read_string(PG_SERVICE)
    known = {name: (found[name]["dbname"], found[name]["user"]) for name in found.sections()}
    assert known == SERVICES_OF_LOGINS
    assert {found[name]["host"] for name in known} == {"postgres"}
    assert all(found[name]["sslmode"] for name in known)


def test_every_python_module_exists_and_can_be_run() -> None:
    modules = [words[3] for _, words in ALL_COMMANDS if words[:3] == ["python", "-P", "-m"]]
    assert modules == ["weir.database.migrate"]
    for module in modules:
        spec = importlib.util.find_spec(module)
        assert spec is not None
        assert spec.origin is not None
        assert '__name__ == "__main__"' in Path(spec.origin).read_text()


def test_every_spark_class_is_in_pyspark() -> None:
    classes = {words[1] for _, words in ALL_COMMANDS if words[0] == "spark-class"}
    assert len(classes) == 2
    (core,) = Path(pyspark.__file__).parent.glob("jars/spark-core_*.jar")
    with zipfile.ZipFile(core) as jar:
        known = set(jar.namelist())
    assert {name.replace(".", "/") + ".class" for name in classes} <= known


_ASK_AIRFLOW = """
import json, sys
from pathlib import Path
import airflow.api_fastapi.core_api
from airflow.cli.cli_parser import get_parser
from airflow.configuration import conf
given = json.load(sys.stdin)
wrong = []
for name in given["settings"]:
    section, key = name.removeprefix("AIRFLOW__").lower().split("__", 1)
    command = key.endswith("_cmd")
    key = key.removesuffix("_cmd")
    known = conf.configuration_description.get(section, {"options": {}})["options"]
    if key not in known or (command and (section, key) not in conf.sensitive_config_values):
        wrong.append(name)
parser = get_parser()
for words in given["commands"]:
    try:
        parser.parse_args(words)
    except SystemExit:
        wrong.append(words)
api = Path(next(iter(airflow.api_fastapi.core_api.__path__)))
if not any("/api/v2/version:" in path.read_text() for path in api.glob("openapi/*.yaml")):
    wrong.append("/api/v2/version")
json.dump({"wrong": wrong, "ports": [conf.get("api", "port"),
           conf.get("scheduler", "scheduler_health_check_server_port")]}, sys.stdout)
"""


def test_airflow_knows_every_setting_and_command(tmp_path: Path) -> None:
    settings = {text for text in strings(RAW) if AIRFLOW_SETTING.fullmatch(text)}
    asked: dict[str, list[Any]] = {
        "settings": sorted(settings),
        "commands": [words[1:] for _, words in ALL_COMMANDS if words[0] == "airflow"],
    }
    assert len(asked["settings"]) > 10
    assert len(asked["commands"]) == 6
    done = subprocess.run(
        [sys.executable, "-c", _ASK_AIRFLOW],
        input=json.dumps(asked),
        env={"AIRFLOW_HOME": str(tmp_path), "PATH": str(Path(sys.executable).parent)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["wrong"] == [], done.stderr
    urls = {name: words[-1] for name, words in ALL_COMMANDS if words[0] == "curl"}
    assert urls["api-server"] == f"http://localhost:{answer['ports'][0]}/api/v2/version"
    assert urls["scheduler"] == f"http://localhost:{answer['ports'][1]}/health"


def test_the_simple_auth_manager_that_the_example_names_exists() -> None:
    (named,) = re.findall(r"AIRFLOW_AUTH_MANAGER=(airflow\.api_fastapi\S+)", EXAMPLE)
    module, _, name = named.rpartition(".")
    spec = importlib.util.find_spec("airflow")
    assert spec is not None
    assert spec.submodule_search_locations
    root = Path(spec.submodule_search_locations[0]).parent
    source = (root / (module.replace(".", "/") + ".py")).read_text()
    assert f"class {name}(" in source


def test_every_setting_of_weir_is_one() -> None:
    known = {f"WEIR_{field.name.upper()}" for field in fields(Settings)}
    for name, service in SERVICES.items():
        for variable in service.get("environment", {}):
            assert not variable.startswith("WEIR_") or variable in known, f"{name}: {variable}"


def test_spark_is_where_airflow_looks_for_it() -> None:
    for name in ("scheduler", "airflow-init"):
        connection = json.loads(SERVICES[name]["environment"]["AIRFLOW_CONN_SPARK_DEFAULT"])
        assert connection["conn_type"] == "spark"
        master = f"{connection['host']}:{connection['port']}"
        assert SERVICES["spark-worker"]["command"][-1] == master
        words = SERVICES["spark-master"]["command"]
        given = dict(zip(words[2::2], words[3::2], strict=True))
        assert f"spark://{given['--host']}:{given['--port']}" == master
        assert given["--host"] in SERVICES
    ports = {name: words[-1] for name, words in ALL_COMMANDS if words[0] == "curl"}
    for name in ("spark-master", "spark-worker"):
        words = SERVICES[name]["command"]
        assert ports[name].startswith(f"http://localhost:{words[words.index('--webui-port') + 1]}/")


def test_driver_and_executors_see_the_same_data_and_functions() -> None:
    def mounts(name: str) -> set[str]:
        return {volume.removesuffix(":ro") for volume in SERVICES[name]["volumes"]}

    assert mounts("scheduler") - mounts("spark-worker") == {
        "./dags:/opt/weir/dags", "logs:/opt/airflow/logs",
    }  # fmt: skip
    assert mounts("spark-worker") < mounts("scheduler")
    targets = {volume.split(":")[1] for volume in mounts("scheduler")}
    environment = SERVICES["scheduler"]["environment"]
    for name in ("WAREHOUSE", "INPUT_ROOTS", "OUTPUT_ROOTS", "FUNCTION_PATH"):
        assert environment[f"WEIR_{name}"] in targets
    for name in ("scheduler", "spark-worker"):
        path = SERVICES[name]["environment"]["PYTHONPATH"].split(":")
        assert path == ["/opt/weir/plugins", "/opt/weir/functions"]


def test_no_password_is_in_the_file() -> None:
    for name, service in SERVICES.items():
        for variable, value in service.get("environment", {}).items():
            if re.search(r"PASS|SECRET|KEY|TOKEN", variable):
                by_name = value.startswith(("/", "cat /run/secrets/"))
                assert by_name, f"{name}: {variable} is not the name of a file"
    for line in FILE.read_text().splitlines():
        assert not re.search(r"://[^/\s@]+:[^/\s@]+@", line), line
        named = re.search(r"(?i)(password|secret|token)['\"]?\s*[=:]\s*(.*)", line)
        # A shell's or psql's variable is no password.
        assert named is None or re.match(r"\"?\$\$|'(weir_\w+|airflow)'", named[2]), line


def test_secrets_are_only_where_they_are_needed() -> None:
    having = {
        secret: {name for name, one in SERVICES.items() if secret in one.get("secrets", [])}
        for secret in COMPOSE["secrets"]
    }
    assert having["postgres"] == {"postgres", "logins"}
    assert having["weir_owner"] == {"logins", "migrate"}
    # The tasks of an output to a table connect by themselves.
    assert having["weir_app"] == {"logins", "scheduler", "spark-worker"}
    assert having["weir_view"] == {"logins"}
    assert having["weir_watch"] == {"logins", "triggerer"}
    assert having["spark"] == {"scheduler", "spark-master", "spark-worker"}
    assert having["airflow_auth"] == {"api-server"}
    for name, service in SERVICES.items():
        for value in strings([service.get("command", []), service.get("environment", {})]):
            for secret in re.findall(r"/run/secrets/(\w+)", value):
                assert secret in service["secrets"], f"{name} reads {secret}, which it has not"


def test_the_example_names_every_variable_with_its_default() -> None:
    given = dict(re.findall(r"^#?(\w+)=(.*)$", EXAMPLE, re.M))
    used: dict[str, tuple[str, str]] = {}
    for text in strings(RAW):
        for _, name, sign, default in VARIABLE.findall(text):
            if name and sign:
                assert used.setdefault(name, (sign, default)) == (sign, default), name
    assert set(given) == set(used)
    required = {name for name, (sign, _) in used.items() if sign == "?"}
    assert set(re.findall(r"^(\w+)=", EXAMPLE, re.M)) == required == set(REQUIRED)
    for name in set(used) - required:
        assert given[name] == used[name][1], name
    for name in required:
        assert name in used[name][1], f"the sentence about {name} does not name it"
        assert used[name][1].endswith(".")
