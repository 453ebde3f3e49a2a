"""Runs a module that may write to one folder alone, and that has no network.

    python -m kernelscope.base.sandbox FOLDER[:FOLDER] MODULE [ARGUMENT ...]

A kernel that somebody else wrote is a program. On Linux, Landlock keeps it from writing outside of
the folder, and a filter of system calls keeps it from sockets, from the memory of other processes
and from the owners and modes of files. Both need no rights, hold for every process that it starts,
and cannot be undone. It may still read the files of the user, and compute as long as its limits
allow. Other systems have neither: see `missing`.

This module imports nothing heavy: threads of libraries that were started before would be free.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import platform
import struct
import sys
from collections.abc import Sequence
from pathlib import Path

_NAME = "kernelscope.base.sandbox"  # and not __main__
_NO_NEW_PRIVILEGES, _SECCOMP, _DROP = 38, 22, 24
_CREATE, _ADD, _RESTRICT = 444, 445, 446
_BENEATH, _VERSION, _FILTER = 1, 1, 2

_WRITE_FILE, _TRUNCATE, _REFER = 1 << 1, 1 << 14, 1 << 13
_MAKE_AND_REMOVE = sum(1 << bit for bit in range(4, 13))
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full")
_READ_EVERYTHING = 2  # the capability by which root reads files of other users

_SYSTEMS = {
    "x86_64": (
        0xC000003E,
        {
            "socket": (41,),
            "ptrace": (101,),
            "process_vm": (310, 311),
            "mode": (90, 91, 268),
            "owner": (92, 93, 94, 260),
            "attribute": (188, 189, 190, 280, 132, 235, 261),
            "system": (155, 165, 166, 175, 176, 246, 248, 249, 250, 298, 308, 313, 320, 321),
            "clock": (164, 227),
        },
    ),
    "aarch64": (
        0xC00000B7,
        {
            "socket": (198,),
            "ptrace": (117,),
            "process_vm": (270, 271),
            "mode": (52, 53),
            "owner": (54, 55),
            "attribute": (5, 6, 7, 88),
            "system": (39, 40, 41, 104, 105, 106, 217, 218, 219, 241, 268, 273, 280, 294),
            "clock": (112, 170),
        },
    ),
}
"""For each machine its number for filters, and the system calls that are refused.

``system``: mounts, modules, keys, other kernels and name spaces."""
_EVERYWHERE = (425, 452)  # io_uring, which opens sockets as well; fchmodat2
_OTHER_CALLS = 0x40000000  # of x32


def missing() -> str:
    """Return the actions from which this system cannot keep a kernel, as a sentence; or empty."""
    gaps = []
    if not _landlock_version():
        gaps.append("writing files of yours")
    if sys.platform != "linux" or platform.machine() not in _SYSTEMS:
        gaps.append("using the network")
    return f"This system cannot keep it from {' or '.join(gaps)}." if gaps else ""


def described() -> str:
    """Return the rights of a kernel, for its reader before it runs."""
    kept = "It has no network and writes to no file of yours." if not missing() else missing()
    return f"A kernel is a program: run those of people whom you trust. {kept}"


def command(folders: Sequence[Path], module: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", _NAME, os.pathsep.join(map(str, folders)), module, *arguments]


def confine(folders: Sequence[str]) -> None:
    """Confine this process, and all that it starts, for ever; as far as the system can."""
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None, use_errno=True)
    if os.geteuid() == 0:
        for capability in range(64):
            if capability != _READ_EVERYTHING:
                libc.prctl(_DROP, capability, 0, 0, 0)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0:
        _restrict_files(libc, folders)
        _restrict_calls(libc)


def _landlock_version() -> int:
    """Return the version of Landlock; 0 where there is none."""
    if sys.platform != "linux":
        return 0
    return max(0, int(ctypes.CDLL(None).syscall(_CREATE, None, 0, _VERSION)))


def _restrict_files(libc: ctypes.CDLL, folders: Sequence[str]) -> None:
    version = _landlock_version()
    if not version:
        return
    handled = _WRITE_FILE | _MAKE_AND_REMOVE
    handled |= _REFER * (version >= 2) | _TRUNCATE * (version >= 3)
    tcp, scope = 3 * (version >= 4), 3 * (version >= 6)  # also no signals to others
    fields = 1 + (version >= 4) + (version >= 6)
    rules = struct.pack(f"={fields}Q", *(handled, tcp, scope)[:fields])
    ruleset = libc.syscall(_CREATE, rules, len(rules), 0)
    if ruleset < 0:
        return
    allowed = dict.fromkeys(folders, handled)
    allowed |= dict.fromkeys(_DEVICES, handled & (_WRITE_FILE | _TRUNCATE))
    for place, access in allowed.items():
        descriptor = os.open(place, os.O_PATH | os.O_CLOEXEC)
        libc.syscall(_ADD, ruleset, _BENEATH, struct.pack("=Qi", access, descriptor), 0)
        os.close(descriptor)
    libc.syscall(_RESTRICT, ruleset, 0)
    os.close(ruleset)


def _restrict_calls(libc: ctypes.CDLL) -> None:
    machine = _SYSTEMS.get(platform.machine())
    if machine is None:
        return
    number, named = machine
    refused = [*_EVERYWHERE, *itertools.chain.from_iterable(named.values())]
    # A program for the filter of the kernel: load the machine and the call, compare, return.
    allow, refuse = 0x7FFF0000, 0x00050001  # the error EPERM
    lines = [(0x20, 0, 0, 4), (0x15, 0, len(refused) + 3, number), (0x20, 0, 0, 0)]
    lines.append((0x35, len(refused) + 1, 0, _OTHER_CALLS))
    lines += [(0x15, len(refused) - place, 0, call) for place, call in enumerate(refused)]
    lines += [(0x06, 0, 0, allow), (0x06, 0, 0, refuse)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in lines))
    program = struct.pack("@HP", len(lines), ctypes.addressof(code))
    libc.prctl(_SECCOMP, _FILTER, program, 0, 0)


def main(arguments: Sequence[str]) -> None:
    """Confine this process, and become the module."""
    folders, module, *rest = arguments
    confine(folders.split(os.pathsep))
    os.execv(sys.executable, [sys.executable, "-m", module, *rest])


if __name__ == "__main__":
    main(sys.argv[1:])
