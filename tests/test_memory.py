"""Under a limit of memory each run ends in a result or in one clear line, never in a traceback."""

from __future__ import annotations

import ctypes
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from kernelscope.base import memory
from kernelscope.base.errors import OutOfMemory
from kernelscope.big.lazy.hints import blocks_mentioned
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.files import write_image
from kernelscope.images.image import Image
from tests.pairs import in_turn
from tests.paths import ROOT
from tests.scripts import run_python

pytestmark = pytest.mark.slow

resource = pytest.importorskip("resource")
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_AS and /proc")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A grey picture of 9 MB, one of 27 MB in 16-bit RGB, and a volume of 20 MB."""
    folder = tmp_path_factory.mktemp("large")
    rng = np.random.default_rng(19)
    grey = rng.integers(0, 256, (3000, 3000), np.uint8)
    write_image(Image.from_array(grey), folder / "grey.png")
    colour = rng.integers(0, 65536, (2000, 2250, 3), np.uint16)
    write_image(Image.from_array(colour), folder / "colour.tif")
    np.save(folder / "head.npy", rng.integers(0, 4000, (96, 320, 320), np.uint16))
    return folder


def limited(megabytes: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    limit = megabytes << 20
    return subprocess.run(
        [sys.executable, "main.py", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        timeout=300,
    )


COMMANDS = (
    "median {}/grey.png out.png",
    "negative {}/colour.tif out.png",
    "mean {}/grey.png out.tif --reference input --residual residual.png",
    "mri-nlm {}/head.npy out.nii.gz --dimensions 2d --search-radius 1 --sigma 20 --beta 1",
    "sobel {}/head.npy out.npy",
)


@linux
@pytest.mark.parametrize(
    ("words", "megabytes"),
    in_turn(COMMANDS, (240, 300, 500, 800), every=4),
    ids=lambda value: str(value).split()[0],
)
def test_a_result_or_one_line(words: str, megabytes: int, pictures: Path, tmp_path: Path) -> None:
    arguments = words.format(pictures).replace(" out.", f" {tmp_path}/out.")
    arguments = arguments.replace("residual.png", f"{tmp_path}/residual.png")
    # A single pass over the picture; its time does not matter here.
    run = limited(megabytes, "apply", *arguments.split(), "--device", "cpu")
    lines = [line for line in run.stderr.splitlines() if not line.startswith("note: ")]
    assert run.returncode in (0, 1), run.stderr
    assert len(lines) == run.returncode, run.stderr
    if run.returncode:
        assert lines[0].startswith("error: ")
        assert "memory" in lines[0]
    made = {each.name for each in tmp_path.iterdir()}
    assert not any(name.startswith(".") for name in made)


def test_blocks_help_unless_it_is_the_compiler_that_lacks_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = tmp_path / "small.tif"
    source.write_bytes(b"II*\0")
    with pytest.raises(OutOfMemory) as caught, blocks_mentioned(source, "--memory 2G"):
        raise OutOfMemory("There is none.", "Close other programs.")
    assert caught.value.hint == "Close other programs. Or filter it in blocks: --memory 2G."
    monkeypatch.setattr(memory, "addresses_left", lambda: 0)
    with pytest.raises(OutOfMemory) as caught, blocks_mentioned(source, "--memory 2G"):
        memory.require_compiling()
    assert caught.value.hint == "Raise the limit (ulimit -v)."


@linux
@pytest.mark.parametrize("megabytes", [40, 80, 111, 140, 180, 220])
def test_one_line_where_numpy_can_hardly_be_imported(megabytes: int, tmp_path: Path) -> None:
    run = limited(megabytes, "apply", "median", "in.png", str(tmp_path / "out.png"))
    assert run.returncode == 1
    (line,) = run.stderr.splitlines()
    needs = "Kernelscope takes 117 MB of address space at least. Raise the limit (ulimit -v)."
    if megabytes < 112:
        assert line == f"error: There is not enough memory: {needs}"
    else:
        assert line.startswith("error: in.png: ")


def large(side: int) -> Request:
    """A request that takes no memory to make, and a lot to run."""
    source = Image(np.broadcast_to(np.uint8(0), (side, side, 1)), "large")
    return Request.create(source, "mean", device=Device.CPU)


class NoBackend:
    """Fails the test where anything is run."""

    id = "cpu"
    name = "CPU"

    def levels(self, spec: Any) -> Any:
        return spec.levels("cpu")

    def availability(self) -> Any:
        from kernelscope.engine.backend import Availability

        return Availability(True, "none")

    def run(self, *_: Any) -> Any:
        pytest.fail("it began")


def test_what_will_not_fit_is_refused_before_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 99e6)
    with pytest.raises(OutOfMemory) as caught:
        execute(large(10_000), {"cpu": cast(Any, NoBackend())})
    assert str(caught.value) == (
        "There is not enough memory to filter large, 10000×10000, grey, 8 bit: it takes 100 MB at "
        "least, and 99 MB are left. Close other programs or use a smaller image."
    )
    monkeypatch.setattr(memory, "available", lambda: 100e6)
    with pytest.raises(pytest.fail.Exception, match="it began"):
        execute(large(10_000), {"cpu": cast(Any, NoBackend())})


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("can't start new thread"),
        ImportError("libscipy.so: failed to map segment from shared object"),
        OSError(12, "Cannot allocate memory"),
        RuntimeError("std::bad_alloc"),
        SystemError("<method 'x' of 'y' objects> returned NULL without setting an exception"),
    ],
    ids=repr,
)
def test_a_shortage_is_told_from_a_bug(error: Exception) -> None:
    class Failing(NoBackend):
        def run(self, *_: Any) -> Any:
            try:
                raise error
            except Exception:
                raise OSError("Could not find the library")  # noqa: B904 - as llvmlite does

    with pytest.raises(OutOfMemory, match="not enough memory to filter large"):
        execute(large(10), {"cpu": cast(Any, Failing())})
    error = ZeroDivisionError("a bug")
    with pytest.raises(OSError, match="Could not find"):
        execute(large(10), {"cpu": cast(Any, Failing())})


@pytest.mark.parametrize(
    "error",
    [
        SystemError("tile cannot extend outside image"),  # Pillow, of a damaged file
        FileNotFoundError(2, "No such file or directory", "Out of memory.png"),
    ],
    ids=repr,
)
def test_no_shortage_is_seen_where_there_is_none(error: Exception) -> None:
    assert not memory.is_shortage(error)


def test_what_is_left_is_the_least_of_all_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def put(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text)
        return tmp_path / name

    monkeypatch.setattr(memory, "_CGROUP", tmp_path)
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_STATM", tmp_path / "statm")
    limit = [resource.RLIM_INFINITY]
    monkeypatch.setattr("resource.getrlimit", lambda _: (limit[0], limit[0]))
    assert memory.available() == math.inf
    put("meminfo", "MemTotal: 9 kB\nMemAvailable:  1000 kB\nSwapFree: 24 kB\n")
    assert memory.available() == 1024 * 1024
    put("memory.max", "max\n")
    put("memory.current", "900000\n")
    put("memory.stat", "anon 5\nactive_file 1000\ninactive_file 2000\n")
    assert memory.available() == 1024 * 1024
    put("memory.max", "1000000\n")
    assert memory.available() == 103_000
    limit[0] = 200 * resource.getpagesize() + 50_000
    put("statm", "200 3 4\n")
    assert memory.available() == 50_000


@linux
def test_the_compiler_gets_what_it_takes() -> None:
    """Less, and the process would hang or be ended; this is how much it takes on this machine."""
    code = (
        "import sys; from kernelscope.base import memory\n"
        "def size(): return int(open('/proc/self/statm').read().split()[0]) * 4096\n"
        "import numpy, kernelscope.cli.main\n"
        "before = size()\n"
        "import numba, threading\n"
        "f = numba.njit(nogil=True)(lambda a: a.sum())\n"
        "thread = threading.Thread(target=f, args=(numpy.zeros(3),))\n"
        "thread.start(); thread.join()\n"
        "import os\n"
        "bound = memory.COMPILER_BYTES + memory.COMPILER_BYTES_A_CORE * (os.cpu_count() or 1)\n"
        "print(size() - before, bound)\n"
    )
    printed = run_python(code, env=os.environ | {"MALLOC_ARENA_MAX": "1"})
    taken, bound = map(int, printed.split())
    assert taken < bound


@linux
def test_a_kernel_is_not_compiled_where_that_would_end_the_process(tmp_path: Path) -> None:
    """LLVM cannot fail otherwise; loading compiled code takes next to nothing."""
    code = (
        "import resource, sys, numpy as np; from kernelscope.base import jit, memory\n"
        "from kernelscope.base.errors import OutOfMemory\n"
        "@jit.inlined\n"
        "def inner(value): return value + 1\n"
        "@jit.kernel\n"
        "def outer(values):\n"
        "    for n in range(values.size): values[n] = inner(values[n])\n"
        "jit.load_numba()\n"
        "left = memory.addresses_left\n"
        "memory.addresses_left = lambda: memory.COMPILING_BYTES - int(sys.argv[1])\n"
        "try: outer.compile(np.zeros(3)); print('compiled')\n"
        "except OutOfMemory as error: print(error)\n"
    )
    script = tmp_path / "script.py"
    script.write_text(code)

    def run(lacking: int) -> str:
        done = subprocess.run(
            [sys.executable, str(script), str(lacking)],
            capture_output=True,
            text=True,
            env=os.environ | {"XDG_CACHE_HOME": str(tmp_path)},
        )
        return done.stdout.strip() or done.stderr

    assert run(1).startswith("There is not enough memory to compile the filter")
    assert run(0) == "compiled"
    assert run(1) == "compiled"


@linux
def test_the_peak_of_a_process_is_not_that_of_its_parent(tmp_path: Path) -> None:
    """The system's own count, ru_maxrss, begins with the memory of the process that started it."""
    child = tmp_path / "child.py"
    child.write_text(
        "from kernelscope.base import memory\n"
        "before = memory.peak()\n"
        "more = bytearray(100 << 20)\n"
        "print(before, memory.peak())\n"
    )
    parent = tmp_path / "parent.py"
    parent.write_text(
        "import os, sys\n"
        "held = bytearray(600 << 20)\n"
        "os.execv(sys.executable, [sys.executable, sys.argv[1]])\n"
    )
    done = subprocess.run(
        [sys.executable, str(parent), str(child)], capture_output=True, text=True, check=True
    )
    before, after = map(int, done.stdout.split())
    assert before < 300 << 20
    assert 90 << 20 < after - before < 150 << 20


def test_little_memory_is_granted_without_asking_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    left = [64e6]

    def available() -> float:
        asked.append(left[0])
        return left[0]

    clock = [100.0]
    monkeypatch.setattr(memory, "available", available)
    monkeypatch.setattr("kernelscope.base.memory.time.monotonic", lambda: clock[0])
    memory.require(1e6, "to filter it")
    memory.require(0.9e6, "to filter it")
    assert len(asked) == 1
    left[0] = 2e6
    memory.require(1e6, "to filter it")  # a 64th of what was left is not little
    assert len(asked) == 2
    memory.require(0.01e6, "to filter it")
    clock[0] += 1
    left[0] = 0.005e6
    with pytest.raises(OutOfMemory):
        memory.require(0.01e6, "to filter it")
    assert len(asked) == 3


def test_many_little_requests_are_no_little_one(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []
    monkeypatch.setattr(memory, "available", lambda: asked.append(0) or 100e6 - 1e6 * len(asked))
    monkeypatch.setattr("kernelscope.base.memory.time.monotonic", lambda: 5.0)
    for _ in range(60):
        memory.require(1e6, "to filter it")
    assert len(asked) == 2, "what was granted is taken off the answer"


_ARENAS = """
import ctypes, sys, threading
from kernelscope.base import memory
if sys.argv[1] == "shared":
    memory.share_arenas()
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.fopen.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
meeting = threading.Barrier(8)

def take():
    meeting.wait()
    libc.malloc(5000)
    meeting.wait()

threads = [threading.Thread(target=take) for _ in range(8)]
[each.start() for each in threads]
[each.join() for each in threads]
file = libc.fopen(sys.argv[2].encode(), b"w")
libc.malloc_info(0, ctypes.c_void_p(file))
libc.fclose(ctypes.c_void_p(file))
"""


@linux
def test_threads_share_two_arenas(tmp_path: Path) -> None:
    """In the window, those of further threads kept 100 MiB that had been freed."""
    if not hasattr(ctypes.CDLL(None), "malloc_info"):
        pytest.skip("not glibc")
    counts = {}
    for kind in ("shared", "own"):
        path = tmp_path / kind
        subprocess.run([sys.executable, "-c", _ARENAS, kind, path], cwd=ROOT / "app", check=True)
        counts[kind] = path.read_text().count("<heap nr=")
    assert counts["shared"] <= 2 < counts["own"]


_FREED = """
import ctypes
from kernelscope.base import memory
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.malloc.argtypes = [ctypes.c_size_t]
blocks = [libc.malloc(64 << 10) for _ in range(1000)]
for each in blocks:
    ctypes.memset(ctypes.c_void_p(each), 1, 64 << 10)
for each in blocks[:-1]:
    libc.free(ctypes.c_void_p(each))
before = memory.resident()
memory.give_back()
print((before - memory.resident()) >> 20)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator")
def test_free_memory_below_a_block_in_use_is_given_back() -> None:
    assert int(run_python(_FREED)) > 50
