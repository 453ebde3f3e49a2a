"""How much memory is left, so that work that cannot fit is refused before it begins.

Three limits are asked for, and the lowest counts: the addresses that the process may use
(``ulimit -v``), its control group (a container), and the machine. Libraries written in C often end
the process when memory runs out, so an allowance for the compiler is checked before it is used.
"""

from __future__ import annotations

import ctypes
import errno
import math
import re
import sys
import time
from collections import deque
from pathlib import Path

from kernelscope.base.errors import NoRoomToCompile, OutOfMemory
from kernelscope.base.parallel import core_count

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

COMPILER_BYTES = 272 << 20
COMPILER_BYTES_A_CORE = 40 << 20
"""Address space that the compiler takes: Numba, LLVM, and SciPy, which Numba loads if it is
installed; for each core a stack and a buffer of its OpenBLAS. Measured 330 MiB on two cores. With
less they do not fail but end the process, or never return: OpenBLAS repeats its request until it
succeeds."""

COMPILING_BYTES = 160 << 20
"""Address space that compiling one kernel may take once the compiler is loaded. Measured 130 MiB at
most, for non-local means; with less, LLVM ends the process."""

_NOTHING = 4 << 20  # bytes of address space that are too few for any library to work

_LITTLE, _MOMENT = 64, 1.0
"""A request for less than one part in this many of the bytes that were left, at most this many
seconds ago, is granted: asking takes 0.15 ms on an EPYC of 2017, as long as filtering a small
picture."""

_noted: deque[tuple[float, float]] = deque(maxlen=1)
"""When the system was last asked, and its answer without the requests that were granted since."""

_M_ARENA_MAX = -8  # from glibc's malloc.h

_CGROUP = Path("/sys/fs/cgroup")
_MEMINFO = Path("/proc/meminfo")
_STATM = Path("/proc/self/statm")
_STATUS = Path("/proc/self/status")

_SIGNS = re.compile(
    r"can't start new thread|failed to map segment|cannot allocate memory|out of memory|"
    r"unable to allocate|bad_alloc|error mapping",
    re.IGNORECASE,
)

_CPYTHON = re.compile(r"without (setting an )?exception")
"""How CPython reports an extension that ran out of memory without raising an exception. The class
alone, SystemError, is not enough: Pillow uses it for damaged files."""


def require(needed: float, what: str, hint: str = "Close other programs.") -> None:
    """Raise `OutOfMemory` if less than `needed` bytes are left, as far as that is known.

    `what` is the end of the sentence ``There is not enough memory ...``, such as ``to filter it``.
    """
    when, left = _noted[-1] if _noted else (-math.inf, 0.0)
    if needed * _LITTLE < left and time.monotonic() - when < _MOMENT:
        _noted.append((when, left - needed))
        return
    left = available()
    _noted.append((time.monotonic(), left - needed))
    if needed > left:
        raise OutOfMemory(
            f"There is not enough memory {what}: it takes {_size(needed)} at least, and "
            f"{_size(max(left, 0))} are left.",
            hint,
        )


def require_compiler() -> None:
    """Raise `OutOfMemory` where loading the compiler would end the process."""
    if "numba" not in sys.modules:
        needed = COMPILER_BYTES + COMPILER_BYTES_A_CORE * core_count()
        _require_addresses(needed, "for the compiler of the filters")


def require_compiling() -> None:
    """Raise `OutOfMemory` where LLVM would end the process."""
    _require_addresses(COMPILING_BYTES, "to compile the filter")


def _require_addresses(needed: float, what: str) -> None:
    left = addresses_left()
    if needed > left:
        raise NoRoomToCompile(
            f"There is not enough memory {what}: it takes {_size(needed)} of address space, and "
            f"this process may use no more than {_size(max(left, 0))}.",
            "Raise the limit (ulimit -v).",
        )


def available() -> float:
    """Return the bytes that this process may still allocate; infinity if that is unknown.

    The least of the amounts that its address limit, its control group and the machine leave. The
    system's file cache and swap space count as free.
    """
    return min(addresses_left(), _group_left(), _machine_left())


def addresses_left() -> float:
    """Return the bytes of address space that `RLIMIT_AS` leaves."""
    if resource is None:
        return math.inf
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit == resource.RLIM_INFINITY:
        return math.inf
    try:
        pages = int(_STATM.read_text(encoding="ascii").split()[0])
    except MemoryError:  # there is not even a buffer to read it
        return 0.0
    except (OSError, ValueError, IndexError):
        return math.inf
    return float(limit - pages * resource.getpagesize())


def resident() -> int:
    """Return the bytes that this process has in memory now; the most it ever had, or 0, if the
    system reports only that or nothing.
    """
    try:
        pages = int(_STATM.read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return peak() or 0
    assert resource is not None  # a system with this file has it
    return pages * resource.getpagesize()


def peak() -> int | None:
    """Return the most bytes that this process had in memory; None if the system keeps no count.

    On Linux the count of its address space is read: that of `getrusage` outlives ``exec``, so it
    begins with the memory of the process that started this one.
    """
    if resource is None:
        return None
    try:
        found = re.search(r"^VmHWM:\s*(\d+) kB$", _STATUS.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        found = None
    if found:
        return 1024 * int(found[1])
    most: int = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def share_arenas() -> None:
    """Let the threads of this process share two arenas of glibc's allocator, where it is used.

    By default each of up to eight threads a core has its own, in which memory that was freed stays
    resident: 101 to 129 MiB after a thousand random actions in the window, with two 23 to 60.
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)
    except (OSError, AttributeError):  # another C library
        return


def give_back() -> None:
    """Have glibc's allocator return free memory to the system, below blocks in use as well.

    After 3,000 random actions in the window 592 MiB were resident, with this 507 to 535.
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):  # another C library
        return


def _machine_left() -> float:
    try:
        lines = _MEMINFO.read_text(encoding="ascii").splitlines()
        pairs = (line.partition(":") for line in lines)
        kilobytes = {name: int(rest.split()[0]) for name, _, rest in pairs}
        return 1024.0 * (kilobytes["MemAvailable"] + kilobytes["SwapFree"])
    except (OSError, ValueError, IndexError, KeyError):
        return math.inf


def _group_left() -> float:
    """Return the bytes that a container, or another control group of version 2, leaves."""
    try:
        limit = int((_CGROUP / "memory.max").read_text(encoding="ascii"))
        taken = int((_CGROUP / "memory.current").read_text(encoding="ascii"))
        words = (_CGROUP / "memory.stat").read_text(encoding="ascii").split()
        files = sum(int(words[words.index(name) + 1]) for name in ("inactive_file", "active_file"))
        return float(limit - taken + files)
    except (OSError, ValueError, IndexError):  # “max” is no number: there is no limit
        return math.inf


def is_shortage(error: BaseException) -> bool:
    """Return whether an error, or one of its causes, is due to a lack of memory.

    Failures to load a library or to start a thread, and those of C++, show it by their message.
    Others are recognised by the address space, of which nothing is left.
    """
    if isinstance(error, MemoryError) or addresses_left() < _NOTHING:
        return True
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        # Of a system error the description alone: the file's name may contain any words.
        text = (each.strerror if isinstance(each, OSError) else None) or str(each)
        if isinstance(each, MemoryError) or _SIGNS.search(text):
            return True
        if isinstance(each, OSError) and each.errno == errno.ENOMEM:
            return True
        if isinstance(each, SystemError) and _CPYTHON.search(text):
            return True
        each = each.__cause__ or each.__context__
    return False


def _size(count: float) -> str:
    return f"{count / 1e6:.0f} MB" if count < 1e9 else f"{count / 1e9:.1f} GB"
