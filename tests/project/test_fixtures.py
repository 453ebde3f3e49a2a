"""The guards of conftest.py stop the tests that they are meant to stop."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from kernelscope.engine.backend import Availability
from tests import conftest
from tests.gui import conftest as gui


@pytest.fixture
def gpu_test(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a stand-in for a test that needs a GPU, on a machine that has none."""
    monkeypatch.setattr(conftest, "probe", lambda: Availability(False, "no driver"))
    monkeypatch.delenv("REQUIRE_GPU", raising=False)
    return SimpleNamespace(get_closest_marker=lambda name: name == "gpu" or None)


def test_gpu_tests_are_skipped_without_one(gpu_test: Any) -> None:
    with pytest.raises(pytest.skip.Exception, match="no driver"):
        conftest.pytest_runtest_setup(gpu_test)


def test_gpu_tests_fail_where_one_is_required(
    gpu_test: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUIRE_GPU", "1")
    with pytest.raises(pytest.fail.Exception, match="REQUIRE_GPU=1, but: no driver"):
        conftest.pytest_runtest_setup(gpu_test)


def test_gpu_tests_run_with_one(gpu_test: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conftest, "probe", lambda: Availability(True, "a card"))
    conftest.pytest_runtest_setup(gpu_test)


def test_a_leaked_thread_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conftest, "PATIENCE", 0.05)
    fixture: Any = conftest.no_leaked_threads
    guard = fixture.__wrapped__()
    next(guard)
    end = threading.Event()
    thread = threading.Thread(target=end.wait, name="forgotten")
    thread.start()
    try:
        with pytest.raises(pytest.fail.Exception, match="forgotten"):
            next(guard)
    finally:
        end.set()
        thread.join()


def test_gpu_tests_are_slow_and_others_are_not() -> None:
    marks: list[str] = []
    gpu, other = (
        SimpleNamespace(
            get_closest_marker=lambda name, own=own: own if name == own else None,
            add_marker=lambda name, own=own: marks.append(f"{own}: {name}"),
        )
        for own in ("gpu", "other")
    )
    items: Any = [gpu, other]
    conftest.pytest_collection_modifyitems(items)
    assert marks == ["gpu: slow"]


def test_tests_of_large_windows_are_slow_unless_they_are_smoke_tests() -> None:
    marks: list[str] = []

    def item(own: str, *fixtures: str) -> SimpleNamespace:
        return SimpleNamespace(
            fixturenames=fixtures,
            get_closest_marker=lambda name: own if name == own else None,
            add_marker=lambda name: marks.append(f"{own}: {name}"),
        )

    items: Any = [
        item("smoke", "opens_slowly"),
        item("plain", "opens_slowly"),
        item("panel", "qtbot"),
    ]
    gui.pytest_collection_modifyitems(items)
    assert marks == ["plain: slow"]
