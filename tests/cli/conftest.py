from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_folder(here: Path) -> None:
    """Commands write into the folder in which they run."""
