"""What docs/recipes.md says about an Airflow that exists."""

import json
import re
from pathlib import Path

from airflow.sdk.module_loading import import_string

from weir.airflow.forms import POOL

PAGE = (Path(__file__).parents[2] / "docs/recipes.md").read_text()


def recipe(heading: str) -> str:
    return PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def test_the_pool_and_the_bundle_are_the_ones_that_weir_uses() -> None:
    said = recipe("Install into an Airflow that exists")
    assert f"airflow pools set {POOL} " in said
    [bundles] = re.findall(r"```json[^\n]*\n(.*?)```", said, re.DOTALL)
    for bundle in json.loads(bundles):
        made = import_string(bundle["classpath"])(name=bundle["name"], **bundle["kwargs"])
        assert made.name == bundle["name"]
