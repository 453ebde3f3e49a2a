"""Kernels compile late, into a cache of their own that follows the sources."""

from __future__ import annotations

import ast
import os
import pickle
import stat
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kernelscope.base import compiled, jit
from kernelscope.filters.median.kernels import run_network
from kernelscope.filters.shared.plain import rolled
from tests.foreign import posix
from tests.paths import ROOT
from tests.scripts import run_python

pytestmark = pytest.mark.slow

RUN_FILTER = """
import numpy as np
from kernelscope.filters import get
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import Cpu, CpuTask
source, output = np.ones((4, 4, 1), np.uint8), np.zeros((4, 4, 1), np.uint8)
task = CpuTask(source, output, {}, Border.REFLECT, "serial")
for sweep in get("negative").implementation(Cpu).plan(task):
    sweep.kernel(*sweep.arguments, 0, sweep.rows)
assert (output == 254).all()
"""


def python(code: str, **environment: str) -> None:
    """Run `code` with a cache of its own."""
    settings = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}
    run_python(code, env=settings | environment)


def test_compiling_says_whether_that_is_new() -> None:
    @jit.kernel
    def double(values, start, stop):  # type: ignore[no-untyped-def]
        for n in range(start, stop):
            values[n] *= 2

    integers, floats = np.ones(3, np.int32), np.ones(3)
    asked = [double.compile(values, 0, 3) for values in (integers, integers, floats, integers)]
    assert asked == [True, False, True, False]
    double(integers, 0, 3)
    assert integers.tolist() == [2, 2, 2]


def test_listing_the_filters_does_not_import_the_compiler() -> None:
    python(
        "import sys; from kernelscope import filters;"
        "from kernelscope.backends import create_backends;"
        "assert filters.discover(); create_backends();"
        "assert 'numba' not in sys.modules"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="the cache folder is set the Linux way")
def test_compiled_kernels_go_to_their_own_folder(tmp_path: Path) -> None:
    python(RUN_FILTER, XDG_CACHE_HOME=str(tmp_path))
    (folder,) = (tmp_path / "kernelscope").iterdir()
    assert folder.name.startswith("numba-")
    assert list(folder.rglob("filters.negative.*.nbc"))


@pytest.mark.skipif(sys.platform != "linux", reason="the cache folder is set the Linux way")
def test_works_where_nothing_can_be_cached(tmp_path: Path) -> None:
    """As in a container with a read-only file system; Numba by itself would fail there."""
    blocked = tmp_path / "file"
    blocked.touch()
    no_cache = """
from kernelscope.filters.shared.border_kernels import divide_round
divide_round(1, 2)
assert type(divide_round.dispatcher._cache).__name__ == "NullCache"
"""
    python(RUN_FILTER + no_cache, XDG_CACHE_HOME=str(blocked))


def test_the_cache_folder_follows_the_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jit, "__file__", str(tmp_path / "base" / "jit.py"))
    source = tmp_path / "filters" / "mean.py"
    source.parent.mkdir()
    source.write_text("a = 1")
    before = jit.cache_folder()
    assert jit.cache_folder() == before
    source.write_text("a = 2")
    changed = jit.cache_folder()
    assert changed != before
    source.rename(source.with_name("mode.py"))
    assert jit.cache_folder() not in (before, changed)


@pytest.mark.parametrize(
    ("module", "own", "shared"),
    [
        ("kernelscope.filters.mean.cpu", True, True),
        ("kernelscope.filters.mean.cpu", False, False),  # a folder without the digest of all rooms
        ("notebook", True, False),
    ],
)
def test_each_checkout_of_the_same_sources_has_the_same_code(
    module: str, own: bool, shared: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(jit, "_is_own_cache", lambda: own)
    monkeypatch.setenv("NUMBA_CACHE_DIR", "c/d")
    for name in ("a", "b", "edited"):
        (tmp_path / f"{name}.py").write_text("edited" if name == "edited" else "")

    def path(file: str = "a", **changed: Any) -> Path:
        code = SimpleNamespace(co_filename=f"{tmp_path / file}.py")
        function: Any = SimpleNamespace(__module__=module, __name__="sums", __code__=code)
        files = {"_cache_path": "c/d/cpu_1", "_version": "0.61", "_source_stamp": (1.0, 100)}
        return jit._CacheFiles(function, SimpleNamespace(**files | changed))._path("types")

    elsewhere = path(_cache_path="c/d/cpu_2"), path(_source_stamp=(2.0, 100))
    assert [each == path() for each in elsewhere] == [shared] * 2
    assert path().parent == Path("c/d" if shared else "c/d/cpu_1")
    assert path(_version="0.62") != path()
    assert path("b") == path()
    assert (path("edited") != path()) == shared  # else the time of the file says it
    of_this_python = path()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "version", "3.99")
        assert path() != of_this_python


@pytest.mark.parametrize(
    ("file", "counts"),
    [
        *(
            (f"{room}/a.py", True)
            for room in ("filters/shared", "images/judging", "files/pictures")
        ),
        *((file, False) for file in ("gui/icons.py", "base/text.py", "files/volumes/nifti.py")),
    ],
)
def test_files_of_every_room_with_kernels_count(
    file: str, counts: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jit, "__file__", str(tmp_path / "base" / "jit.py"))
    before = jit.cache_folder()
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text("a = 1")
    assert (jit.cache_folder() != before) == counts


DECORATORS = {"kernel", "inlined", "fused"}
"""Names of `kernelscope.base.jit` that compile a function."""


def test_all_kernels_and_their_constants_count() -> None:
    """A kernel elsewhere, or a constant from elsewhere, would be taken from an old cache."""
    package = ROOT / "app" / "kernelscope"

    def counts(path: Path) -> bool:
        return path.as_posix().removeprefix(f"{package.as_posix()}/").startswith(jit._WITH_KERNELS)

    kernels = 0
    for path in package.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "base.jit" not in text:
            continue
        tree = ast.parse(text)
        foreign = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kernelscope"):
                names = {alias.asname or alias.name for alias in node.names}
                if (
                    node.module == "kernelscope.base.jit"
                    and {a.name for a in node.names} & DECORATORS
                ):
                    assert counts(path), path
                place = package.joinpath(*(node.module or "").split(".")[1:])
                if not (counts(place.with_suffix(".py")) or counts(place / "__init__.py")):
                    foreign |= names
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef) and any(
                isinstance(each, ast.Name) and each.id in DECORATORS
                for each in function.decorator_list
            ):
                kernels += 1
                used = {each.id for each in ast.walk(function) if isinstance(each, ast.Name)}
                assert not used & foreign, (path, function.name)
    assert kernels > 100


def test_kernels_call_each_other_and_release_the_lock() -> None:
    from kernelscope.filters.shared.border_kernels import divide_round

    assert [divide_round(n, 2) for n in (-5, -3, -1, 1, 3, 5)] == [-2, -2, 0, 0, 2, 2]
    assert divide_round(7, -2) == -4
    assert divide_round.dispatcher.targetoptions["nogil"]
    assert divide_round.__doc__


def test_a_kernel_that_others_call_can_be_called_from_python() -> None:
    """Each way has code of its own, in memory and on the disk."""
    from kernelscope.filters.shared.border_kernels import REFLECT, border_index, pad_columns

    line = np.array([0, 1, 2, 0], np.int32)
    pad_columns(line, 1, 1, REFLECT)
    assert line.tolist() == [1, 1, 2, 2]
    assert [border_index(n, 2, REFLECT) for n in (-1, 0, 2)] == [0, 0, 1]
    assert border_index._numba_type_.dispatcher is not border_index.dispatcher
    part = border_index._numba_type_.dispatcher
    assert part.targetoptions["no_cpython_wrapper"]
    # A short one is left to Numba, for the sake of the loops that take it in.
    part.compile(border_index.types_of(-1, 2, REFLECT))
    assert {type(each.library).__name__ for each in part.overloads.values()} == {"JITCodeLibrary"}


def test_compiling_ahead_computes_nothing() -> None:
    @jit.kernel
    def fill(output, value):
        output[:] = value

    output = np.zeros(3)
    fill.compile(output, 1.0)
    assert not output.any()
    assert len(fill.dispatcher.signatures) == 1
    fill(output, 2.0)
    assert (output == 2).all()
    assert len(fill.dispatcher.signatures) == 1


# --- the cache of compiled code ---

COUNT = """
import sys, logging
logging.basicConfig(level=logging.WARNING, stream=sys.stdout)
import numpy as np
from kernelscope.base import jit

@jit.kernel
def inner(values, n):
    return 3 * values[n]

@jit.kernel
def outer(values, start, stop):
    for n in range(start, stop):
        values[n] = inner(values, n)

values = np.arange(5)
outer(values, 0, 5)
assert values.tolist() == [0, 3, 6, 9, 12], values
print(sum(outer.dispatcher.stats.cache_hits.values()), "hits", flush=True)
"""

AGAIN = """
import runpy, sys
for _ in sys.stdin:
    runpy.run_path(sys.argv[1])
"""


class Starts:
    """A process in which the kernels of `COUNT` are made anew for each start.

    Importing Numba takes four fifths of the time of a process that does it once.
    """

    def __init__(self, folder: Path) -> None:
        script = folder / "script.py"
        if not script.exists():
            script.write_text(COUNT)
        environment = {key: value for key, value in os.environ.items() if key != "NUMBA_CACHE_DIR"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", AGAIN, str(script)],
            env=environment | {"XDG_CACHE_HOME": str(folder), "PYTHONPATH": str(ROOT / "app")},
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def count_hits(self) -> tuple[int, str]:
        """Compile or load a kernel; return how often that was kept, and the log."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        log = []
        while not (line := self._process.stdout.readline()).endswith(" hits\n"):
            assert line, "the process ended"
            log.append(line.rstrip("\n"))
        return int(line.split()[0]), "\n".join(log)

    def __enter__(self) -> Starts:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
        assert self._process.returncode == 0


def count_hits(folder: Path) -> tuple[int, str]:
    """Compile or load a kernel in a new process; return how often that was kept, and the log."""
    with Starts(folder) as process:
        return process.count_hits()


def kept_code(folder: Path) -> list[Path]:
    (cache,) = (folder / "kernelscope").iterdir()
    return [path for path in cache.rglob("*") if path.is_file()]


@pytest.mark.skipif(sys.platform != "linux", reason="the cache folder is set the Linux way")
def test_compiled_code_is_kept_privately_and_checked_before_it_is_used(tmp_path: Path) -> None:
    assert count_hits(tmp_path) == (0, "")
    files = kept_code(tmp_path)
    assert {path.suffix for path in files} == {".nbc"}
    assert len(files) == 2
    assert stat.S_IMODE(files[0].parents[1].stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    whole = {path: path.read_bytes() for path in files}
    others = dict(zip(files, reversed(whole.values()), strict=True))
    with Starts(tmp_path) as process:
        assert process.count_hits() == (1, "")
        for damage in (
            lambda path: b"",
            lambda path: whole[path][: len(whole[path]) // 2],
            lambda path: whole[path][:-1] + bytes([whole[path][-1] ^ 1]),
            lambda path: bytes([whole[path][0] ^ 1]) + whole[path][1:],
            lambda path: others[path],
        ):
            for path in files:
                path.write_bytes(damage(path))
            hits, log = process.count_hits()
            assert hits == 0
            assert "is damaged and will be compiled again" in log
            assert process.count_hits() == (1, "")  # it was


@pytest.mark.skipif(sys.platform != "linux", reason="looks for machine code of Linux")
def test_a_part_is_kept_without_machine_code_and_serves_the_next_caller(tmp_path: Path) -> None:
    with Starts(tmp_path) as process:
        process.count_hits()
        outer, part = sorted(kept_code(tmp_path), key=lambda path: "outer" not in path.name)
        assert ".inner.part-" in part.name
        assert b"\x7fELF" in outer.read_bytes()
        assert b"\x7fELF" not in part.read_bytes()
        outer.unlink()
        before = part.stat()
        assert process.count_hits() == (0, "")
    assert outer.exists()
    assert (part.stat().st_ino, part.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


class _Touch:
    """Unpickling it makes a folder."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (self.path,)


@posix
def test_compiled_code_of_somebody_else_is_not_run(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    evil = pickle.dumps(_Touch(str(mark)))
    with Starts(tmp_path) as process:
        process.count_hits()
        (path,) = (path for path in kept_code(tmp_path) if "outer" in path.name)
        content = compiled.digest(path, evil) + evil
        for how in ("written by all", "a link", "not whole"):
            path.unlink()
            if how == "a link":
                (tmp_path / "elsewhere").write_bytes(content)
                path.symlink_to(tmp_path / "elsewhere")
            else:
                path.write_bytes(evil if how == "not whole" else content)
                path.chmod(0o622 if how == "written by all" else 0o600)
            hits, log = process.count_hits()
            assert "will be compiled again" in log
            assert hits == 0
            assert not mark.exists()
        path.write_bytes(content)
        path.chmod(0o600)
        process.count_hits()
        assert mark.exists()  # so it would have been seen


@posix
def test_an_open_folder_is_closed_before_code_is_kept_in_it(tmp_path: Path) -> None:
    count_hits(tmp_path)
    folder = kept_code(tmp_path)[0].parents[1]
    folder.chmod(0o777)
    assert count_hits(tmp_path) == (1, "")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


# Code that came with the package ------------------------------------------------------

PLAN = """
from pathlib import Path
from types import SimpleNamespace
from typing import Any
import numpy as np
from kernelscope.base import jit
from kernelscope.filters import get
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import Cpu, CpuTask
source, output = np.ones((4, 4, 1), np.uint8), np.zeros((4, 4, 1), np.uint8)
task = CpuTask(source, output, {}, Border.REFLECT, "parallel")
(sweep,) = get("negative").implementation(Cpu).plan(task)
arguments = *sweep.arguments, 0, 4
folder = Path(FOLDER)
"""

EXPORT = """
jit.load_numba()
folder = folder / jit.portable_name()
folder.mkdir(parents=True)
sweep.kernel.export(folder, *arguments)
"""

LOAD = """
jit.PREBUILT = folder
jit.load_numba()
from numba.core import event
with event.install_recorder("numba:compile") as recorder:
    sweep.kernel.compile(*arguments)
assert bool(recorder.buffer) is COMPILES, recorder.buffer
sweep.kernel(*arguments)
assert (output == 254).all()
"""


@pytest.fixture(scope="module")
def prebuilt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the code of a filter for processors of the baseline."""
    folder = tmp_path_factory.mktemp("prebuilt")
    python(
        PLAN.replace("FOLDER", repr(str(folder))) + EXPORT,
        NUMBA_CACHE_DIR=str(tmp_path_factory.mktemp("cache")),
        NUMBA_CPU_NAME=jit.BASELINE,
        NUMBA_CPU_FEATURES="",
    )
    return folder


def load(folder: Path, cache: Path, before: str = "", *, compiles: bool) -> None:
    code = PLAN.replace("FOLDER", repr(str(folder))) + before
    python(code + LOAD.replace("COMPILES", str(compiles)), NUMBA_CACHE_DIR=str(cache))


def can_run_baseline() -> bool:
    from llvmlite import binding  # type: ignore[import-untyped]

    features = binding.get_host_cpu_features()
    return all(features.get(name) for name in jit._BASELINE_FEATURES)


@pytest.mark.skipif(not can_run_baseline(), reason="has no code of that kind")
def test_a_first_run_loads_what_came_with_the_package(prebuilt: Path, tmp_path: Path) -> None:
    load(prebuilt, tmp_path, compiles=False)
    assert not list(tmp_path.rglob("*.nbc"))


@pytest.mark.parametrize(
    "change",
    [
        "jit._BASELINE_FEATURES = ('no such feature',)",
        "jit.portable_name = lambda: 'numba-0.1'",
        pytest.param("folder = folder / 'elsewhere'", marks=pytest.mark.exhaustive),
    ],
)
def test_code_for_other_machines_or_versions_is_left_alone(
    prebuilt: Path, tmp_path: Path, change: str
) -> None:
    load(prebuilt, tmp_path, change, compiles=True)
    assert list(tmp_path.rglob("*.nbc"))


def test_damaged_code_is_compiled_again(prebuilt: Path, tmp_path: Path) -> None:
    (file,) = prebuilt.rglob("*.nbc")
    folder = tmp_path / "prebuilt" / file.parent.name
    folder.mkdir(parents=True)
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    (folder / file.name).write_bytes(content)
    load(folder.parent, tmp_path / "cache", compiles=True)


@pytest.mark.exhaustive
def test_filters_that_share_a_kernel_are_compiled_one_after_the_other(tmp_path: Path) -> None:
    script = [sys.executable, str(ROOT / ".ci" / "prebuild.py"), "--out", str(tmp_path)]
    done = subprocess.run(
        [*script, "--usual", "--jobs", "1", "--only", "laplace", "mask"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (file,) = tmp_path.rglob("*.nbc")
    assert file.name.startswith("filters.shared.correlation_bytes.correlate_bytes-")


def test_advice_for_llvm_is_nothing_in_the_interpreter() -> None:
    """A kernel with plain loops can be stepped through; generated code cannot, and says so."""
    assert rolled() is None
    with pytest.raises(TypeError, match="run_network is generated for compiled kernels only"):
        run_network(1, 2)
