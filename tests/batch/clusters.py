"""A Dask cluster of processes, which tests can kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from distributed import Security

from tests.paths import ROOT
from tests.patience import PATIENCE


class Cluster:
    """A scheduler and workers on this machine, each a process; ended with the block.

    Parameters
    ----------
    folder : Path
        For the scheduler's address and the files of workers.
    tls : sequence of str
        Options that name keys.
    """

    def __init__(self, folder: Path, workers: int = 2, tls: Sequence[str] = ()) -> None:
        self._folder, found = folder, folder / "scheduler.json"
        self._tls = tls
        self.scheduler = self._start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
            "--scheduler-file", str(found), *self._tls,
        )  # fmt: skip
        self.workers: list[subprocess.Popen[bytes]] = []
        try:
            self.address = self._address(found)
            self.workers += [self.add_worker() for _ in range(workers)]
        except BaseException:
            self.close()
            raise

    def _address(self, found: Path) -> str:
        """Return the scheduler's address, once the file with it is whole.

        The scheduler writes the file in place, so a reader may find it empty.
        """
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            assert self.scheduler.poll() is None, "the scheduler ended"
            with suppress(FileNotFoundError, json.JSONDecodeError):
                address: str = json.loads(found.read_text("utf-8"))["address"]
                return address
            time.sleep(0.02)
        pytest.fail(f"no address of the scheduler after {PATIENCE} s")

    def add_worker(self, **variables: str) -> subprocess.Popen[bytes]:
        return self._start(
            "worker", self.address, "--no-nanny", "--nthreads", "1", "--no-dashboard",
            "--local-directory", str(self._folder), *self._tls, **variables,
        )  # fmt: skip

    def _start(self, what: str, *arguments: str, **variables: str) -> subprocess.Popen[bytes]:
        path = os.pathsep.join([str(ROOT / "app"), str(ROOT)])
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{what}", *arguments],
            env={**os.environ, "PYTHONPATH": path, "NUMBA_NUM_THREADS": "1", **variables},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        for process in [*self.workers, self.scheduler]:
            kill(process)


def write_keys(folder: Path) -> dict[str, Path]:
    """Write a certificate and its key, signed by itself; return the file of each option."""
    security = Security.temporary()
    content = {"--tls-ca-file": security.tls_ca_file, "--tls-cert": security.tls_client_cert}
    content["--tls-key"] = security.tls_client_key
    folder.mkdir(exist_ok=True)
    files = {}
    for option, text in content.items():
        files[option] = folder / f"{option[6:]}.pem"
        files[option].write_text(text)
    return files


def as_options(files: dict[str, Path]) -> list[str]:
    """Return the options of a command line."""
    return [str(word) for pair in files.items() for word in pair]


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process at once, as a power cut does."""
    if process.poll() is None:
        os.kill(process.pid, signal.SIGKILL)
    process.wait()
