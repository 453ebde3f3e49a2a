"""What holds for every test of the window: no screen is needed, and Qt must not complain."""

from __future__ import annotations

import os

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fail tests of the window on Qt warnings."""
    for item in items:
        if "qapp" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.qt_log_level_fail("WARNING"))
            # What a screenless platform says about every window that is shown or raised.
            quiet = r"does not support (propagateSizeHints|raise)\(\)"
            item.add_marker(pytest.mark.qt_log_ignore(quiet))
