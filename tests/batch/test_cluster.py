"""Batches on a real scheduler and real workers, which go away in the middle."""

from __future__ import annotations

import json
import os
import re
import socket
import ssl
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tifffile
from cryptography.hazmat.primitives import serialization
from distributed.comm.tcp import convert_stream_closed_error

from kernelscope.base.errors import AppError
from kernelscope.base.parallel import core_count
from kernelscope.big.batch.cluster import (
    ClusterBatch,
    Tls,
    connected,
    local_workers,
    pinned,
    share_of_cores,
)
from kernelscope.big.batch.conductor import FileOutcome
from kernelscope.big.batch.item import JOURNAL, PARTS, FileState, Item
from kernelscope.big.batch.journal import Journal
from kernelscope.big.batch.listing import find_items
from kernelscope.big.batch.task import TaskSettings
from kernelscope.big.workers import SchedulerLost
from kernelscope.cli.main import main
from kernelscope.engine.control import CancelToken
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.step import Step
from kernelscope.files import write_image, write_recipe
from kernelscope.images.image import Image
from tests.batch.clusters import Cluster, as_options, kill, write_keys
from tests.paths import ROOT
from tests.patience import PATIENCE

RECIPE = Recipe((Step.create("median", {"size": 5}),))
FILES = 16


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    write_recipe(RECIPE, path := tmp_path / "clean.recipe.json")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(FILES):
        path = tmp_path / "in" / ("below" if number % 3 else "") / f"{number:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(number).integers(0, 256, (200, 210), np.uint8)
        write_image(Image.from_array(pixels), path)
    return tmp_path / "in"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path, 1) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_keys(tmp_path_factory.mktemp("keys"))


@pytest.fixture(scope="module")
def tls(keys: dict[str, Path]) -> Tls:
    return Tls(keys["--tls-ca-file"], keys["--tls-cert"], keys["--tls-key"])


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory, keys: dict[str, Path]) -> Iterator[Cluster]:
    """Yield a cluster for tests that leave it as it was: its processes take seconds to start.

    The others have clusters without keys.
    """
    folder = tmp_path_factory.mktemp("secured")
    with Cluster(folder, 2, [*as_options(keys), "--protocol", "tls"]) as cluster:
        assert cluster.address.startswith("tls://")
        yield cluster


def batch(*arguments: object) -> int:
    return main(["batch", *map(str, arguments)])


def contents(out: Path) -> dict[str, bytes]:
    """Return the results in a folder, and all else that was left in it."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in out.rglob("*")
        if path.is_file() and path.name != JOURNAL
    }


def done_lines(out: Path) -> list[str]:
    lines = (out / JOURNAL).read_text("utf-8").splitlines()
    return [line["done"] for line in map(json.loads, lines) if "done" in line]


def settings_of(out: Path) -> TaskSettings:
    return TaskSettings(RECIPE, RunOptions(device=Device.CPU), out / PARTS, threads=1)


def local(recipe: Path, folder: Path) -> dict[str, bytes]:
    """Return the results of a batch in this process."""
    out = folder.with_name("local")
    assert batch(recipe, folder, "--out", out, "--device", "cpu") == 0
    return contents(out)


@pytest.mark.slow
def test_a_worker_is_killed_in_the_middle(
    recipe: Path, folder: Path, tmp_path: Path, secured: Cluster, tls: Tls
) -> None:
    out, killed, victim = tmp_path / "out", list[int](), secured.add_worker()
    secured.workers.append(victim)
    items = find_items([folder], out).items
    journal = Journal(out, RECIPE)

    def report(outcome: FileOutcome) -> None:
        assert outcome.status is FileState.DONE, outcome.reason
        killed.append(0)
        if len(killed) == 4:
            kill(victim)

    with connected(secured.address, tls) as client:
        client.wait_for_workers(3)
        outcomes = ClusterBatch(items, settings_of(out), client).run(journal, CancelToken(), report)
    journal.close()
    assert [each.poll() is None for each in secured.workers] == [True, True, False]
    assert sorted(each.item.source for each in outcomes) == [item.source for item in sorted(
        items, key=lambda item: item.source)]  # fmt: skip
    assert contents(out) == local(recipe, folder)
    assert sorted(done_lines(out)) == sorted(contents(out))
    assert not (out / PARTS).exists()


@pytest.mark.slow
def test_the_scheduler_goes_away_and_the_batch_is_resumed(
    recipe: Path, folder: Path, tmp_path: Path, cluster: Cluster,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    out, seen = tmp_path / "out", list[Item]()
    items = find_items([folder], out).items
    journal = Journal(out, RECIPE)

    def report(outcome: FileOutcome) -> None:
        seen.append(outcome.item)
        if len(seen) == 4:
            kill(cluster.scheduler)

    with (
        connected(cluster.address) as client,
        pytest.raises(SchedulerLost, match=r"went away.*--resume"),
    ):
        ClusterBatch(items, settings_of(out), client).run(journal, CancelToken(), report)
    journal.close()
    assert 4 <= len(seen) < FILES
    before = {item: item.target.stat().st_mtime_ns for item in seen}
    assert len(contents(out)) == len(seen)
    assert batch(recipe, folder, "--out", out, "--resume", "--device", "cpu") == 0
    assert f"{FILES - len(seen)} of {FILES} files" in capsys.readouterr().out
    assert all(item.target.stat().st_mtime_ns == time for item, time in before.items())
    assert contents(out) == local(recipe, folder)
    assert max(Counter(done_lines(out)).values()) == 1


@pytest.mark.slow
def test_a_file_that_ends_every_worker_is_a_failure_of_its_own(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried by three workers, as the scheduler's limit is; the rest goes on."""
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "2")
    (tmp_path / "deadly").mkdir()
    (tmp_path / "deadly" / "sitecustomize.py").write_text(
        "import os, kernelscope.big.batch.task as task\n"
        "before = task._filtered\n"
        "def deadly(content, item):\n"
        "    if item.source.name == '07.png':\n"
        "        os._exit(1)\n"
        "    return before(content, item)\n"
        "task._filtered = deadly\n"
    )
    path = os.pathsep.join([str(tmp_path / "deadly"), str(ROOT / "app"), str(ROOT)])
    out = tmp_path / "out"
    items = find_items([folder], out).items
    journal = Journal(out, RECIPE)
    with Cluster(tmp_path, 0) as cluster, connected(cluster.address) as client:
        cluster.workers += [cluster.add_worker(PYTHONPATH=path) for _ in range(4)]
        client.wait_for_workers(4)
        outcomes = ClusterBatch(items, settings_of(out), client).run(journal, CancelToken())
    journal.close()
    (failed,) = (each for each in outcomes if each.status is FileState.FAILED)
    assert failed.item.source.name == "07.png"
    assert "Every worker that had this file in work ended" in failed.reason
    assert len(contents(out)) == FILES - 1


@pytest.mark.slow
def test_the_command_line_on_workers_of_its_own(
    recipe: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, summary = tmp_path / "out", tmp_path / "s.json"
    (folder / "00.png").write_bytes(b"no picture")
    command = recipe, folder, "--out", out, "--device", "cpu", "--summary", summary
    with socket.socket() as other:
        with suppress(OSError):  # Dask's usual port is taken, by this test or by others
            other.bind(("127.0.0.1", 8787))
            other.listen()
        assert batch(*command, "--local-cluster", 2) == 1
    captured = capsys.readouterr()
    assert captured.out.startswith(f"{FILES - 1} of {FILES} files in ")
    assert [line.split(":")[0] for line in captured.err.splitlines()] == ["failed"]
    rows = json.loads(summary.read_text("utf-8"))["files"]
    items = find_items([folder], out).items
    assert [row["source"] for row in rows] == [str(item.source) for item in items]
    assert rows[1]["filtered"] > 0
    assert len(contents(out)) == FILES - 1
    assert batch(*command, "--resume") == 1
    assert f"0 of {FILES} files" in capsys.readouterr().out


@pytest.mark.slow
def test_the_command_line_on_a_scheduler(
    recipe: Path, folder: Path, tmp_path: Path, secured: Cluster, keys: dict[str, Path],
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    out = tmp_path / "out"
    where = "--scheduler", secured.address, *as_options(keys)
    command = recipe, folder, "--out", out, "--device", "cpu", *where
    assert batch(*command) == 0
    assert contents(out) == local(recipe, folder)
    (out / "00.png").write_bytes(b"mine")
    (out / JOURNAL).unlink()
    capsys.readouterr()
    assert batch(*command) == 1
    assert capsys.readouterr().err.count("the file is there already") == FILES
    assert (out / "00.png").read_bytes() == b"mine"


@pytest.mark.slow
def test_local_workers_refuse_other_users_of_the_machine() -> None:
    with local_workers(1, threads=1) as client:
        address = client.scheduler.address
        assert address.startswith("tls://127.0.0.1:")
        stranger = [sys.executable, str(Path(__file__).with_name("stranger.py")), address]
        done = subprocess.run(
            stranger, capture_output=True, text=True, timeout=300, check=False, cwd="/"
        )
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert [line.partition(":")[0] for line in lines] == ["refused", "refused"], done.stdout
        assert client.submit(os.getppid).result(timeout=PATIENCE)  # who has the keys is let in


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Write the keys of somebody whom the scheduler does not know."""
    return write_keys(tmp_path_factory.mktemp("others"))


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["tls://", ""])
def test_blocks_on_a_scheduler_with_tls(
    tmp_path: Path,
    secured: Cluster,
    keys: dict[str, Path],
    protocol: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    voxels = np.random.default_rng(3).integers(0, 3000, (23, 40, 33)).astype(np.uint16)
    tifffile.imwrite("in.tif", voxels, photometric="minisblack")
    line = "apply median in.tif {} --size 3 --memory 64G --device cpu"
    address = secured.address.replace("tls://", protocol)
    words = [*line.format("far.tif").split(), "--scheduler", address, *as_options(keys)]
    assert main(words) == 0
    assert main(line.format("near.tif").split()) == 0
    assert Path("far.tif").read_bytes() == Path("near.tif").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "strange", "protocol", "message"),
    [
        (
            "batch",
            None,
            "tls",
            "error: The scheduler at “{}” wants keys. Give --tls-ca-file, --tls-cert",
        ),
        pytest.param(
            "apply",
            None,
            "tcp",
            "error: The scheduler at “{}” ended the connection. If it was started with",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(
            "batch",
            (),
            "tcp",
            "error: “{}” is an address without encryption, for which keys are of no use.",
            marks=pytest.mark.exhaustive,
        ),
        (
            "apply",
            ("--tls-ca-file",),
            "tls",
            "error: The certificate of the scheduler at “{}” was not signed by {ca}: ",
        ),
        (
            "batch",
            ("--tls-cert", "--tls-key"),
            "tls",
            "error: The scheduler at “{}” ended the connection. It may not know the authority",
        ),
    ],
)
def test_a_scheduler_with_tls_and_keys_that_it_refuses(
    command: str,
    strange: tuple[str, ...] | None,
    protocol: str,
    message: str,
    recipe: Path,
    folder: Path,
    tmp_path: Path,
    secured: Cluster,
    keys: dict[str, Path],
    others: dict[str, Path],
) -> None:
    """In a process of its own: a client that cannot connect reports it as it is destroyed.

    The commands take turns, since both connect by the same code and processes take seconds.
    """
    volume, out = tmp_path / "in.tif", tmp_path / "out.tif"
    tifffile.imwrite(volume, np.zeros((3, 9, 9), np.uint8), photometric="minisblack")
    words = {
        "batch": ["batch", recipe, folder, "--out", out],
        "apply": ["apply", "median", volume, out, "--size", "3", "--memory", "1G"],
    }
    address = secured.address.replace("tls", protocol)
    given = {} if strange is None else keys | {each: others[each] for each in strange}
    line = [*words[command], "--scheduler", address, *as_options(given)]
    done = subprocess.run(
        [sys.executable, "-m", "kernelscope", *map(str, line)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "app")},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 1
    (error,) = done.stderr.splitlines()
    assert error.startswith(message.format(address, ca=others["--tls-ca-file"]))
    assert not [each for each in tmp_path.rglob("*") if each.name.startswith("out.tif/")]


def test_an_unknown_authority_is_named_whenever_its_alert_arrives(
    tls: Tls, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the connection is closed, the alert is an error of Dask that has no cause."""

    async def refuse(*_: object) -> None:
        alert = ssl.SSLError(1, "alert")
        alert.reason = "TLSV1_ALERT_UNKNOWN_CA"
        convert_stream_closed_error("test", alert)

    monkeypatch.setattr("kernelscope.big.batch.cluster._reach", refuse)
    with (
        pytest.raises(AppError, match=r"ended the connection\. It may not know the authority"),
        connected("tls://127.0.0.1:1", tls),
    ):
        pass


def locked(key: Path, folder: Path) -> Path:
    """Return a copy of a key that a passphrase locks."""
    loaded = serialization.load_pem_private_key(key.read_bytes(), None)
    path = folder / "locked.pem"
    path.write_bytes(
        loaded.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    return path


@pytest.mark.parametrize(
    ("option", "content", "message"),
    [
        ("--tls-ca-file", "rubbish", "error: {}: this is no certificate."),
        ("--tls-cert", "rubbish", "error: {}: this is no certificate."),
        ("--tls-key", "rubbish", "error: {}: this is no private key."),
        ("--tls-cert", "key", "error: {}: this is no certificate."),
        ("--tls-key", "certificate", "error: {}: this is no private key."),
        ("--tls-key", "of another", "error: {}: this is not the key of "),
        ("--tls-key", "locked", "error: {}: the key is locked by a passphrase."),
        ("--tls-key", "a folder", "error: {}: the file cannot be read (Is a directory)."),
    ],
)
def test_files_without_a_certificate_or_its_key(
    option: str, content: str, message: str,
    recipe: Path, folder: Path, tmp_path: Path, keys: dict[str, Path], others: dict[str, Path],
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    rubbish = tmp_path / "rubbish.pem"
    rubbish.write_text("nothing of the kind\n")
    file = {
        "rubbish": rubbish,
        "key": keys["--tls-key"],
        "certificate": keys["--tls-cert"],
        "of another": others["--tls-key"],
        "locked": locked(keys["--tls-key"], tmp_path),
        "a folder": folder,
    }[content]
    given = as_options({**keys, option: file})
    command = recipe, folder, "--out", tmp_path / "out", "--scheduler", "tls://127.0.0.1:9"
    assert batch(*command, *given) == 1
    (error,) = capfd.readouterr().err.splitlines()  # OpenSSL would ask for the passphrase
    assert error.startswith(message.format(file))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--scheduler tls://x:1 --tls-cert a", "Give --tls-ca-file and --tls-key as well"),
        ("--tls-cert a --tls-key b --tls-ca-file c", "--tls-ca-file is for --scheduler"),
        ("--local-cluster 1 --tls-cert a --tls-key b --tls-ca-file c", "makes its own keys"),
        (
            "--scheduler tls://x:1 --tls-cert no --tls-key b --tls-ca-file no.pem",
            r"no\.pem: the file cannot be read",
        ),
    ],
)
def test_keys_that_are_missing_or_of_no_use(
    recipe: Path, folder: Path, tmp_path: Path, options: str, message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert batch(recipe, folder, "--out", tmp_path / "out", *options.split()) in (1, 2)
    assert re.search(message, capsys.readouterr().err)


@pytest.mark.slow
def test_a_cancelled_batch_leaves_no_parts(
    folder: Path, tmp_path: Path, secured: Cluster, tls: Tls
) -> None:
    out, token = tmp_path / "out", CancelToken()
    items = find_items([folder], out).items
    journal = Journal(out, RECIPE)
    with connected(secured.address, tls) as client:
        outcomes = ClusterBatch(items, settings_of(out), client).run(
            journal, token, lambda outcome: token.cancel()
        )
    journal.close()
    assert 1 <= len(outcomes) < FILES
    deadline = time.monotonic() + PATIENCE
    while len(contents(out)) > len(outcomes) or (out / PARTS).exists():  # a worker still writes
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert len(contents(out)) == len(outcomes)


@pytest.mark.slow
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "no address:x", "carrier://pigeon:1"])
def test_no_scheduler_is_there(
    address: str, recipe: Path, folder: Path, tmp_path: Path,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("kernelscope.big.batch.cluster._CONNECT_SECONDS", 0.5)
    assert batch(recipe, folder, "--out", tmp_path / "out", "--scheduler", address) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: No scheduler answers at “{address}”.")
    assert "dask scheduler" in line


def test_without_dask_the_command_that_installs_it_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(AppError, match=r"not installed.*\[cluster\]"), connected("tcp://x:1"):
        pass


def test_gpus_are_not_chosen_here_for_other_machines(recipe: Path, tmp_path: Path) -> None:
    command = recipe, tmp_path, "--out", tmp_path / "out", "--scheduler", "tcp://x:1"
    for more in ("--gpu", "--local-cluster"):
        with pytest.raises(SystemExit) as ended:
            batch(*command, more, 1)
        assert ended.value.code == 2


@pytest.mark.parametrize(
    ("count", "gpus", "own", "wanted"),
    [
        (3, None, None, ["0", "1", "2"]),
        (3, (2, 0), None, ["2", "0", "2"]),
        (3, None, "5, 7", ["5", "7", ""]),
        (2, (1,), "GPU-a,GPU-b", ["GPU-b", "GPU-b"]),
    ],
)
def test_each_worker_has_a_gpu_of_its_own(
    count: int, gpus: tuple[int, ...] | None, own: str | None, wanted: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    if own is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", own)
    assert pinned(count, gpus) == wanted


def test_workers_share_the_cores() -> None:
    assert share_of_cores(1) == core_count()
    assert share_of_cores(10 * core_count()) == 1


class KilledWorker(Exception):
    """As Dask calls a task whose workers ended."""


class Scheduler:
    """Gives up each task of one file after `begun` workers began it; counts how often."""

    status = "running"

    def __init__(self, begun: int) -> None:
        self.begun, self.sent = begun, 0

    def map(self, function: object, texts: list[str], key: list[str], **how: object) -> list[Any]:
        (text,), (name,) = texts, key
        self.sent += 1
        task = json.loads(text)
        for number in range(self.begun):
            Path(task["parts"], f"{task['number']}-{self.sent}{number}").mkdir()
        future = SimpleNamespace(key=name, status="error", exception=lambda timeout: KilledWorker())
        future.add_done_callback = lambda callback: callback(future)
        return [future]


@pytest.mark.parametrize(("begun", "sent"), [(0, 6), (1, 3), (3, 1)])
def test_a_file_that_only_waited_in_lost_workers_is_sent_again(
    begun: int, sent: int, tmp_path: Path
) -> None:
    """As long as no more than two workers have begun it, and five times at most."""
    out, scheduler = tmp_path / "out", Scheduler(begun)
    items = [Item(tmp_path / "a.png", out / "a.png")]
    journal = Journal(out, RECIPE)
    client: Any = scheduler
    (outcome,) = ClusterBatch(items, settings_of(out), client).run(journal, CancelToken())
    journal.close()
    assert "Every worker that had this file in work ended" in outcome.reason
    assert scheduler.sent == sent
    assert not (out / PARTS).exists()
