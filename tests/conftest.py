"""Rules for every test: no thread is left behind, and GPU tests need a GPU."""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from kernelscope.backends.cpu import CpuBackend
from kernelscope.backends.cuda import slabs
from kernelscope.backends.cuda.probe import probe
from kernelscope.base import memory
from kernelscope.bench import rules
from kernelscope.library.session import session
from tests import builds
from tests.paths import ROOT
from tests.patience import PATIENCE

# Programs that tests start find this checkout's package, as pytest's own `pythonpath` does.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(ROOT / "app"), str(ROOT), os.environ.get("PYTHONPATH", "")]
).rstrip(os.pathsep)

# How long an example or drawing it takes depends on what else the machine does.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")

_CRASHES = "KERNELSCOPE_CRASHES"
"""Environment variable: the folder for the stacks of processes that crash."""

_NOTE = pytest.StashKey[str]()
"""Why compiled code of this session is not kept; nothing if it is."""


def pytest_cmdline_main(config: pytest.Config) -> None:
    """Seed the drawn examples by the commit: each has its own, and fails again where it failed."""
    if config.option.hypothesis_seed is None:
        commit = ["git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"]
        with contextlib.suppress(OSError, subprocess.CalledProcessError):  # no clone
            found = subprocess.check_output(commit, text=True, stderr=subprocess.DEVNULL)
            config.option.hypothesis_seed = int(found, 16)


@pytest.hookimpl(trylast=True)  # after pytest's own, which writes to the standard error
def pytest_configure(config: pytest.Config) -> None:
    """Make the folders of the session; a process that crashes leaves its threads' stacks there."""
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None:
        clean_up, config.stash[_NOTE] = builds.open_folder()
        config.add_cleanup(clean_up)
        folder = os.environ[_CRASHES] = tempfile.mkdtemp(prefix="kernelscope-crashes-")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        builds.keep_bytecode()
    else:
        file = Path(os.environ[_CRASHES], worker).open("w", encoding="utf-8")  # noqa: SIM115
        config.add_cleanup(file.close)
        faulthandler.enable(file)
    # Thousands of files are written, and no test looks at a disk after the power has failed.
    patch = pytest.MonkeyPatch()
    patch.setattr(os, "fsync", lambda descriptor: None)
    config.add_cleanup(patch.undo)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show at the end what is thousands of lines up: those stacks, and what was not collected."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    for report in terminalreporter.getreports("error"):
        if isinstance(report, pytest.CollectReport):
            terminalreporter.write_line(uncollected(report))
    if note := terminalreporter.config.stash[_NOTE]:
        terminalreporter.write_line(note)
    for path in sorted(Path(os.environ[_CRASHES]).iterdir()):
        if stacks := path.read_text("utf-8", "replace"):
            terminalreporter.section(f"crash of {path.name}")
            terminalreporter.write_line(stacks)


def uncollected(report: pytest.CollectReport) -> str:
    """Return one line with the cause why a file of tests was not collected."""
    causes = re.findall(r"^E +(.*\S)$", report.longreprtext, re.MULTILINE)
    return f"{report.nodeid} cannot be collected: {(causes or ['see above'])[-1]}"


@pytest.fixture(scope="module")
def small_cache() -> Iterator[None]:
    """Rewrite a megabyte before each timed run, not twice the largest cache: 300 MB on some."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules, "last_cache", lambda: 1 << 20)
        yield


@pytest.fixture(autouse=True)
def no_leaked_threads() -> Iterator[None]:
    """Fail a test that leaves a thread running; it would disturb or hang later ones."""
    before = set(threading.enumerate())
    yield
    deadline = time.monotonic() + PATIENCE
    while leaked := [
        thread
        for thread in set(threading.enumerate()) - before
        # A dummy only stands for a foreign thread (Qt's) that once called Python.
        if not isinstance(thread, threading._DummyThread)
        # Dask keeps one for all its clients, and those of a client that could not connect.
        and not thread.name.startswith(("Dask-", "IO loop"))
        # Those of the library zarr serve the process until it ends.
        and not thread.name.startswith(("zarr_io", "asyncio_"))
    ]:
        if time.monotonic() > deadline:
            pytest.fail(f"threads still running: {[thread.name for thread in leaked]}")
        time.sleep(0.01)


@pytest.fixture(autouse=True)
def memory_is_asked_for() -> None:
    """Have the first test for free memory ask the system, or what stands in for it."""
    memory._noted.clear()


@pytest.fixture
def backend() -> Iterator[CpuBackend]:
    backend = CpuBackend(threads=2)
    yield backend
    backend.close()


@pytest.fixture
def backends(backend: CpuBackend) -> dict[str, CpuBackend]:
    """The processor alone, as the engine takes it."""
    return {"cpu": backend}


@pytest.fixture
def closed_session() -> Iterator[None]:
    """End the threads that the library's session of the process keeps for the next call."""
    yield
    session().close()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def rows_of_a_slab(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Have everything on a GPU, real or made up, cut into slabs of so many rows."""

    def cut(rows: int) -> None:
        monkeypatch.setattr(slabs, "fits", lambda *_: False)
        monkeypatch.setattr(slabs, "slab_rows", lambda *_: rows)

    return cut


GPU_FOLDER = ROOT / "tests" / "gpu"


def missing_gpu() -> str:
    """Return why tests that need a GPU are left out, or nothing where they run or must fail."""
    if os.environ.get("REQUIRE_GPU") == "1":
        return ""
    state = probe()
    return "" if state.available else state.summary


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out the modules of which each test needs a GPU, where there is none."""
    return True if collection_path == GPU_FOLDER and missing_gpu() else None


def pytest_report_header() -> str | None:
    """Name the lane that is left out, and the reason."""
    reason = missing_gpu()
    return f"tests that need a GPU are left out: {reason}" if reason else None


@pytest.hookimpl(tryfirst=True)  # before pytest applies `-m`
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the lane: `-m` decides, and so does a test that is named on its own.

    Tests that need a GPU are slow, since each process first compiles and loads kernels, and so are
    those of the exhaustive lane. These are left out unless `-m` names them.
    """
    named = any("::" in argument for argument in config.args)
    left_out = {"exhaustive"}
    if named or "exhaustive" in config.option.markexpr:
        left_out.clear()
    if missing_gpu():
        left_out.add("gpu")
    kept, without = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if marks & {"gpu", "exhaustive"}:
            item.add_marker("slow")
        (without if marks & left_out else kept).append(item)
    for item in beyond_the_quick_loop(kept):
        item.add_marker("slow")
    if without:
        config.hook.pytest_deselected(items=without)
        items[:] = kept


CASES_OF_THE_LOOP = 3
"""Cases of one test in the quick loop: of 8,900 tests that are not slow, 2,670 differ in more than
their parameters."""


def beyond_the_quick_loop(items: list[pytest.Item]) -> list[pytest.Item]:
    """Return what the quick loop leaves out: of a test's many cases, all but a few far apart."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("slow") is None:
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    left_out = []
    for each in cases.values():
        last, steps = len(each) - 1, CASES_OF_THE_LOOP - 1
        kept = {last * step // steps for step in range(CASES_OF_THE_LOOP)}
        left_out += [item for number, item in enumerate(each) if number not in kept]
    return left_out


_TESTS_RUN = pytest.StashKey[int]()

COLLECTION_EVERY = 20
"""Tests without widgets for each collection of young garbage, which takes a millisecond."""

FULL_COLLECTION_EVERY = 250
"""Tests for each collection of all garbage, old objects too."""


def pytest_sessionstart(session: pytest.Session) -> None:
    """Import the modules in every second worker from the last to the first, before collection.

    In step, each worker would compile the bytecode of all libraries and tests of a fresh clone, for
    20 seconds of processor time; so each has half of it from another.
    """
    if int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 2:
        folders = [Path(given).resolve() for given in session.config.args]
        for path in sorted((each for f in folders for each in f.rglob("test_*.py")), reverse=True):
            if not path.is_relative_to(GPU_FOLDER):
                with contextlib.suppress(Exception, pytest.skip.Exception):  # collection says it
                    importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))


def pytest_collectstart() -> None:
    """Look for no garbage among tests that are collected, which takes a quarter of that time."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Collect garbage between tests only, and on the main thread.

    A thread of one test that collected would destroy widgets of an earlier one while Qt uses
    them. The program does the same; see `kernelscope.gui.work.garbage`.
    """
    gc.disable()
    gc.freeze()  # the tests themselves, which stay to the end, with little garbage among them


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Collect the garbage of the test; see `pytest_collection_finish`."""
    done = yield
    count = item.session.stash.get(_TESTS_RUN, 0) + 1
    item.session.stash[_TESTS_RUN] = count
    if count % FULL_COLLECTION_EVERY == 0:
        gc.collect()
        gc.freeze()  # what is left stays to the end: a second a time late in a session
    elif count % COLLECTION_EVERY == 0 or "qapp" in getattr(item, "fixturenames", ()):
        gc.collect(1)
    return done


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fail a GPU test without a GPU where one is promised."""
    if item.get_closest_marker("gpu") is not None and not (state := probe()).available:
        pytest.fail(f"REQUIRE_GPU=1, but: {state.summary}", pytrace=False)
