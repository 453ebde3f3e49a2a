"""Rules for tests of the library."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelscope.library.session import session


@pytest.fixture(autouse=True)
def closed_session() -> Iterator[None]:
    """End the threads that the session of the process keeps for the next call."""
    yield
    session().close()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
