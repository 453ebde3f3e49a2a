"""The conda recipe has the versions of the project, and the form of its schema."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import yaml

import kernelscope
from tests.paths import ROOT

RECIPE: dict[str, Any] = yaml.safe_load(
    (ROOT / ".ci" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
)
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]
OTHER_NAMES = {"pyside6-essentials": "pyside6"}


def ranges(requirements: list[str]) -> dict[str, str]:
    """Return the range of each package; of one with several, for the newest Python."""
    found = {}
    for requirement in requirements:
        name, wanted = re.match(r"([\w-]+)\s*([^;]*)", requirement).groups()
        found[OTHER_NAMES.get(name.lower(), name.lower())] = wanted.strip()
    return found


def output(name: str) -> dict[str, Any]:
    (found,) = (each for each in RECIPE["outputs"] if each["package"]["name"] == name)
    assert isinstance(found, dict)
    return found


def test_versions_are_those_of_the_project() -> None:
    run = ranges(output("kernelscope")["requirements"]["run"])
    assert run.pop("python") == PROJECT["requires-python"]
    assert run == ranges(PROJECT["dependencies"])
    window = [
        each for each in output("kernelscope-window")["requirements"]["run"] if "$" not in each
    ]
    assert ranges(window) == ranges(PROJECT["optional-dependencies"]["window"])
    package = output("kernelscope")
    (command,) = PROJECT["scripts"].items()
    assert package["build"]["python"]["entry_points"] == [" = ".join(command)]
    assert RECIPE["about"]["summary"] == PROJECT["description"]
    assert RECIPE["about"]["license"] == PROJECT["license"]
    host = ranges(package["requirements"]["host"])
    assert host["hatchling"] == ">=1.27"
    assert RECIPE["context"]["version"] == kernelscope.__version__
