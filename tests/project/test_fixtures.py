"""The guards of conftest.py stop the tests that they are meant to stop."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from kernelscope.engine.backend import Availability
from tests import conftest
from tests.gui import conftest as gui
from tests.paths import ROOT


@pytest.fixture
def gpu_test(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a stand-in for a test that needs a GPU, on a machine that has none."""
    monkeypatch.setattr(conftest, "probe", lambda: Availability(False, "no driver"))
    monkeypatch.delenv("REQUIRE_GPU", raising=False)
    return SimpleNamespace(get_closest_marker=lambda name: name == "gpu" or None)


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


@pytest.mark.parametrize(
    ("arguments", "expression", "available", "kept"),
    [
        (["tests"], "", False, "plain"),
        (["tests"], "not slow", False, "plain"),  # of which pytest takes those that it names
        (["tests"], "exhaustive", False, "plain exhaustive"),
        (["tests/test_jit.py::test_all[1]"], "", False, "plain exhaustive"),
        (["tests"], "", True, "plain gpu"),
        (["tests"], "exhaustive", True, "plain gpu exhaustive"),
    ],
)
def test_lanes(
    gpu_test: Any,
    arguments: list[str],
    expression: str,
    available: bool,
    kept: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only `-m` or a name runs what is exhaustive; without a GPU nothing runs that needs one."""
    if available:
        monkeypatch.setattr(conftest, "probe", lambda: Availability(True, "a card"))
    marks: list[str] = []
    items: list[Any] = [
        SimpleNamespace(
            name=own,
            nodeid=own,
            get_closest_marker=lambda name, own=own: own if name == own else None,
            iter_markers=lambda own=own: [SimpleNamespace(name=own)],
            add_marker=lambda name, own=own: marks.append(f"{own}: {name}"),
        )
        for own in ("plain", "gpu", "exhaustive")
    ]
    deselected: list[Any] = []
    config: Any = SimpleNamespace(
        args=arguments,
        option=SimpleNamespace(markexpr=expression),
        hook=SimpleNamespace(pytest_deselected=lambda items: deselected.extend(items)),
    )
    conftest.pytest_collection_modifyitems(config, items)
    assert marks == ["gpu: slow", "exhaustive: slow"]
    assert " ".join(item.name for item in items) == kept
    assert len(items) + len(deselected) == 3


def test_the_quick_loop_has_a_few_cases_of_each_test_far_apart() -> None:
    def item(nodeid: str, *marks: str) -> Any:
        return SimpleNamespace(
            nodeid=nodeid, get_closest_marker=lambda name: name if name in marks else None
        )

    many = [item(f"one[{number}]") for number in range(10)]
    few = [item("two"), item("three[a]"), item("three[b]"), item("four[x]", "slow")]
    left_out = conftest.beyond_the_quick_loop([*few[:2], *many, *few[2:]])
    assert [each for each in many if each not in left_out] == [many[0], many[4], many[9]]
    assert not any(each in left_out for each in few)
    assert conftest.CASES_OF_THE_LOOP == 3


@pytest.mark.parametrize(("worker", "imports"), [("gw0", False), ("gw1", True), (None, False)])
def test_every_second_worker_imports_the_last_modules_first(
    worker: str | None, imports: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    if worker:
        monkeypatch.setenv("PYTEST_XDIST_WORKER", worker)
    names: list[str] = []
    monkeypatch.setattr("importlib.import_module", names.append)
    session: Any = SimpleNamespace(config=SimpleNamespace(args=[str(ROOT / "tests")]))
    conftest.pytest_sessionstart(session)
    assert names == sorted(names, reverse=True)
    assert (__name__ in names) == imports
    assert not any(name.startswith("tests.gpu") for name in names)


def test_modules_that_need_a_gpu_are_not_collected_without_one(
    gpu_test: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert conftest.pytest_ignore_collect(conftest.GPU_FOLDER)
    assert conftest.pytest_ignore_collect(conftest.GPU_FOLDER.parent / "gui") is None
    assert "no driver" in (conftest.pytest_report_header() or "")
    monkeypatch.setenv("REQUIRE_GPU", "1")
    assert conftest.pytest_ignore_collect(conftest.GPU_FOLDER) is None
    assert conftest.pytest_report_header() is None


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
