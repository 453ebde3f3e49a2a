"""The process of an edited kernel: ``python -m kernelscope.backends.trial.child FOLDER``."""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from kernelscope.backends.trial import compiling, emulated, on_card
from kernelscope.backends.trial.protocol import (
    CARD,
    CHECKED,
    COMPILE_ONLY,
    EMULATED,
    TRACED,
    Ending,
    StageNotes,
    TrialJob,
    TrialReport,
)
from kernelscope.base.errors import AppError

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_MOST_FILE_BYTES = 256 << 20  # of a file: a kernel that prints without end does not fill the disk
_PARENT_SECONDS = 1.0  # between looks at whether the window's process lives

_TARGETS: dict[str, Callable[[TrialJob, Path, StageNotes], TrialReport]] = {
    COMPILE_ONLY: compiling.try_out,
    EMULATED: emulated.try_out,
    CHECKED: emulated.check,
    CARD: on_card.try_out,
    TRACED: emulated.trace,
}


def main(folder: Path) -> int:
    """Try the job in `folder` and write the report there."""
    faulthandler.enable()
    try:
        job = TrialJob.read(folder)
        limit(job.memory)
        report = _TARGETS[job.target](job, folder, StageNotes(folder))
    except MemoryError:
        report = TrialReport(
            Ending.MEMORY,
            "The kernel, or compiling it, took more memory than a trial may have.",
            "Look for an array that is far too large.",
        )
    except AppError as error:
        report = TrialReport(Ending.REFUSED, error.message, error.hint)
    report.write(folder)
    return 0


def follow_parent(parent: int) -> None:
    """End this process if the window's is killed: nobody would stop an endless loop then."""
    while os.getppid() == parent:
        time.sleep(_PARENT_SECONDS)
    os._exit(1)


def limit(memory: int) -> None:
    """Bound the memory, the files and the core dumps of this process and those that it starts."""
    if resource is None:
        return
    bounds = [(resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, _MOST_FILE_BYTES)]
    if memory:
        bounds.append((resource.RLIMIT_AS, memory))
    for which, most in bounds:
        _, hard = resource.getrlimit(which)
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(which, (least, least))


if __name__ == "__main__":
    threading.Thread(target=follow_parent, args=(os.getppid(),), daemon=True).start()
    sys.exit(main(Path(sys.argv[1])))
