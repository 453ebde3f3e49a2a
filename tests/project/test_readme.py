"""The README is true, and has the commands that continuous integration takes from it."""

from __future__ import annotations

import re

import kernelscope
from tests.paths import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(mark: str) -> str:
    """Return the code block after ``<!-- mark -->``."""
    found = re.search(rf"<!-- {re.escape(mark)} -->\n```\w+\n(.*?)```", README, re.DOTALL)
    assert found, f"README.md has no block {mark}"
    return found[1]


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_ci_finds_its_commands() -> None:
    assert "pytest" in block("test-command")
    assert "apt-get install" in block("system-libraries")


def test_commands_name_what_there_is() -> None:
    config = re.search(r"mkdocs build --strict -f (\S+?)`", README)
    assert config
    assert (ROOT / config[1]).is_file()
    for extra in re.findall(r"pip install .*?\[(\w+)\]", README):
        assert f"\n{extra} = [" in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_citation_names_this_version() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {kernelscope.__version__}\n" in text
    assert kernelscope.__version__ in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
