"""Delay of a worker next to a busy window, by the interpreter's switch interval.

Python lets another thread wait for its lock for up to `sys.getswitchinterval`, 5 ms by default.
A worker releases the lock with every copy and every kernel, and needs it again to read the clock.
Prints medians and 95th percentiles in milliseconds. Run it on a machine
that does nothing else:

    python resources/bench/switch_interval.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import threading
import time

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QCoreApplication, Qt, QTimer

from kernelscope.base import jit

ROUNDS = 60
CHUNKS = 64
PERIOD = 0.005
"""Seconds between two ticks of the window."""


@jit.kernel
def add_up(values: NDArray[np.float64], times: int) -> float:
    total = 0.0
    for _ in range(times):
        for value in values:
            total += value * 1.0000001
    return total


def measure(interval: float, busy: float) -> str:
    """Return a row: the window's thread computes `busy` seconds in each tick."""
    sys.setswitchinterval(interval)
    application = QCoreApplication([])
    values = np.ones(1 << 17)
    add_up(values, 1)
    source = np.ones((CHUNKS, 1 << 18), np.uint8)
    target = np.empty_like(source)
    copies: list[float] = []
    kernels: list[float] = []
    python: list[float] = []
    late: list[float] = []
    done = threading.Event()

    def work() -> None:
        for _ in range(ROUNDS):
            start = time.perf_counter()
            for chunk in range(CHUNKS):
                np.copyto(target[chunk], source[chunk])
            copies.append(time.perf_counter() - start)
            time.sleep(0.002)
            start = time.perf_counter()
            add_up(values, 8)
            kernels.append(time.perf_counter() - start)
            time.sleep(0.002)
        for _ in range(5):
            start = time.perf_counter()
            sum(number for number in range(1_000_000))
            python.append(time.perf_counter() - start)
        done.set()

    due = 0.0

    def tick() -> None:
        nonlocal due
        now = time.perf_counter()
        if due:
            late.append(max(0.0, now - due))
        while time.perf_counter() < now + busy:
            pass
        due = time.perf_counter() + PERIOD
        if done.is_set():
            application.quit()

    timer = QTimer()
    timer.setTimerType(Qt.TimerType.PreciseTimer)
    timer.timeout.connect(tick)
    timer.start(round(1e3 * PERIOD))
    worker = threading.Thread(target=work)
    worker.start()
    application.exec()
    worker.join()

    def figures(seconds: list[float]) -> str:
        seconds = sorted(seconds)
        high = seconds[int(0.95 * len(seconds))]
        return f"{1e3 * statistics.median(seconds):8.2f} {1e3 * high:8.2f}"

    columns = map(figures, (copies, kernels, python, late))
    return f"{1e3 * interval:11.1f} {1e3 * busy:8.0f} {' '.join(columns)}"


def main() -> None:
    if len(sys.argv) == 3:
        print(measure(float(sys.argv[1]), float(sys.argv[2])), flush=True)
        return
    print("   interval     busy      copies in chunks    kernel            Python      window late")
    for busy in ("0", "0.003", "0.02"):
        for interval in ("0.005", "0.0005", "0.005", "0.0005"):
            subprocess.run([sys.executable, __file__, interval, busy], check=True)


if __name__ == "__main__":
    main()
