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


def main(wanted: list[str]) -> int:
    program = shutil.which("compute-sanitizer")
    if program is None:
        print("error: compute-sanitizer is not installed; it comes with the CUDA toolkit.")
        return 2
    watched = (sys.executable, "-m", "tests.gpu.every_kernel", *wanted)
    # Once without: it fills the cache of compiled kernels, which all the others then use.
    if subprocess.run(watched, check=False).returncode != 0:
        return 2
    running = {
        tool: subprocess.Popen(
            [program, "--tool", tool, *more, "--error-exitcode", str(FOUND), *watched],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for tool, more in TOOLS.items()
    }
    status = 0
    for tool, process in running.items():
        output, _ = process.communicate()
        lines = output.splitlines()
        summary = [line for line in lines if "SUMMARY" in line or line.endswith(" runs")]
        print(f"{tool}: exit status {process.returncode}; {'; '.join(summary)}")
        if process.returncode != 0:
            print("\n".join(lines[:60]))
            status = max(status, 1 if process.returncode == FOUND else 2)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
