"""Watch every kernel with compute-sanitizer: ``python -m tests.gpu.sanitize [FILTER ...]``.

Exit status 1 if memcheck, racecheck or initcheck found anything, 2 if one of them did not run.
"""

from __future__ import annotations

import shutil
import subprocess
import sys

TOOLS = {
    # The bindings ask the driver for functions that it does not have; that is no finding.
    "memcheck": ("--report-api-errors", "no"),
    "racecheck": (),
    "initcheck": (),
}
FOUND = 99
"""Exit status that a tool is asked to end with when it found something."""


PARTS = 5
"""Into how many processes the runs are split, for each tool."""


def main(wanted: list[str]) -> int:
    program = shutil.which("compute-sanitizer")
    if program is None:
        print("error: compute-sanitizer is not installed; it comes with the CUDA toolkit.")
        return 2

    def watched(part: int) -> tuple[str, ...]:
        module = (sys.executable, "-m", "tests.gpu.every_kernel")
        return (*module, *wanted, "--part", str(part), str(PARTS))

    # Once without: it fills the cache of compiled kernels, which all the others then use.
    first = [subprocess.Popen(watched(part)) for part in range(PARTS)]
    statuses = [process.wait() for process in first]  # of all: none is left behind
    if any(statuses):
        return 2
    running = {
        (tool, part): subprocess.Popen(
            [program, "--tool", tool, *more, "--error-exitcode", str(FOUND), *watched(part)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for tool, more in TOOLS.items()
        for part in range(PARTS)
    }
    status = 0
    for (tool, part), process in running.items():
        output, _ = process.communicate()
        lines = output.splitlines()
        summary = [line for line in lines if "SUMMARY" in line or line.endswith(" runs")]
        print(
            f"{tool} {part + 1}/{PARTS}: exit status {process.returncode}; {'; '.join(summary)}",
            flush=True,
        )
        if process.returncode != 0:
            print("\n".join(lines[:60]), flush=True)
            status = max(status, 1 if process.returncode == FOUND else 2)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
