from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_session_left(closed_session: None) -> None:
    """Each test uses the library, and so its session."""
