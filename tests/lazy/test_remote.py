"""Blocks computed by the workers of a cluster: the bytes of one process, whatever is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tifffile

from kernelscope.backends.cpu import CpuBackend
from kernelscope.base.errors import AppError, Cancelled
from kernelscope.big.batch.cluster import connected
from kernelscope.big.lazy import blocks, remote
from kernelscope.big.lazy.files import Filed, filter_file
from kernelscope.big.lazy.remote import Workers
from kernelscope.cli.main import main
from kernelscope.engine.control import CancelToken
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.step import ESTIMATE, Step
from tests.batch.clusters import Cluster, kill
from tests.patience import PATIENCE

LIMIT = 8 << 30
RECIPE = Recipe((Step.create("median", {"size": 3}), Step.create("mean", {"size": 5})))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with a volume, cut into odd blocks."""
    monkeypatch.chdir(tmp_path)
    voxels = np.random.default_rng(3).integers(0, 3000, (23, 40, 33)).astype(np.uint16)
    tifffile.imwrite("in.tif", voxels, photometric="minisblack")
    monkeypatch.setattr(blocks, "_sides", lambda source, *_: (4, 20, source.shape[2]))
    return tmp_path


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield a cluster for tests that leave it as it was: its processes take seconds to start."""
    with Cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


def run(
    backend: CpuBackend, target: str, workers: Workers | None = None, recipe: Recipe = RECIPE,
    token: CancelToken | None = None,
) -> Filed:  # fmt: skip
    backends = {"cpu": backend}
    source = Path("in.tif")
    return filter_file(recipe, source, Path(target), LIMIT, backends, workers=workers, token=token)


def left() -> list[str]:
    return [path.name for path in Path().iterdir() if path.name.startswith(".kernelscope")]


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["tif", "ome.zarr"])
def test_a_worker_is_killed_in_the_middle(
    suffix: str, backend: CpuBackend, shared: Cluster
) -> None:
    count, load, victim = list[int](), remote.Remote._taken, shared.add_worker()
    shared.workers.append(victim)

    def taken(self: remote.Remote, answer: dict[str, object]) -> object:
        count.append(0)
        if len(count) == 5:
            kill(victim)
        return load(self, answer)

    with connected(shared.address) as client, pytest.MonkeyPatch.context() as patch:
        patch.setattr(remote.Remote, "_taken", taken)
        client.wait_for_workers(3)
        report = run(backend, f"far.{suffix}", Workers(client, 1))
    assert victim.poll() is not None
    assert report.streamed.blocks == len(count) == 12
    assert report.streamed.peak_bytes
    run(backend, f"near.{suffix}")
    if suffix == "tif":
        assert Path("far.tif").read_bytes() == Path("near.tif").read_bytes()
    else:
        names = [{p.relative_to(top) for p in Path(top).rglob("*")} for top in (
            "far.ome.zarr", "near.ome.zarr")]  # fmt: skip
        assert names[0] == names[1]
        for name in names[0]:
            far, near = Path("far.ome.zarr", name), Path("near.ome.zarr", name)
            assert far.is_dir() or far.read_bytes() == near.read_bytes()
    assert not left()


@pytest.mark.slow
def test_estimates_and_surveys_are_made_once(backend: CpuBackend, shared: Cluster) -> None:
    values = {"search_radius": 2, "patch": 3, "filter_sigma": ESTIMATE}
    recipe = Recipe((Step.create("nlm", values), Step.create("sobel", {})))
    with connected(shared.address) as client:
        far = run(backend, "far.tif", Workers(client, 1), recipe)
    near = run(backend, "near.tif", recipe=recipe)
    assert far.steps == near.steps
    assert Path("far.tif").read_bytes() == Path("near.tif").read_bytes()


@pytest.mark.slow
def test_the_scheduler_goes_away(
    backend: CpuBackend, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("far.tif").write_bytes(b"earlier")
    load = remote.Remote._taken

    def taken(self: remote.Remote, answer: dict[str, object]) -> object:
        if cluster.scheduler.poll() is None:
            kill(cluster.scheduler)
        return load(self, answer)

    monkeypatch.setattr(remote.Remote, "_taken", taken)
    with (
        pytest.raises(AppError, match="scheduler went away"),
        connected(cluster.address) as client,
    ):
        run(backend, "far.tif", Workers(client, 1))
    assert Path("far.tif").read_bytes() == b"earlier"
    assert not left()


@pytest.mark.slow
def test_cancelled_while_it_waits_for_workers(tmp_path: Path, backend: CpuBackend) -> None:
    token = CancelToken()
    with Cluster(tmp_path, workers=0) as cluster, connected(cluster.address) as client:
        timer = threading.Timer(1.0, token.cancel)
        timer.start()
        begun = time.monotonic()
        with pytest.raises(Cancelled):
            run(backend, "far.tif", Workers(client, 1), token=token)
        assert time.monotonic() - begun < PATIENCE
        timer.join()
    assert not left()


@pytest.mark.slow
def test_a_file_that_is_not_there_for_workers(
    backend: CpuBackend, shared: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = remote.describe
    monkeypatch.setattr(
        "kernelscope.big.lazy.files.describe",
        lambda *them: {**real(*them), "source": "/elsewhere/in.tif"},
    )
    with (
        connected(shared.address) as client,
        pytest.raises(AppError, match=r"/elsewhere/in\.tif: there is no such file on .*share"),
    ):
        run(backend, "far.tif", Workers(client, 1))
    assert not Path("far.tif").exists()


@pytest.mark.slow
def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    line = "median in.tif {} --size 3 --memory 8G --device cpu"
    assert main(["apply", *line.format("far.tif").split(), "--local-cluster", "2"]) == 0
    assert "of memory in each process, 8192 MiB were allowed" in capsys.readouterr().out
    assert main(["apply", *line.format("near.tif").split()]) == 0
    assert Path("far.tif").read_bytes() == Path("near.tif").read_bytes()


def test_a_cluster_computes_blocks_only(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["apply", "median", "in.tif", "out.tif", "--local-cluster", "2"]) == 2
    assert "there are none without --memory" in capsys.readouterr().err
    words = "apply median in.tif out.tif --memory 2G --scheduler tcp://node:1 --gpu 0"
    assert main(words.split()) == 2
    assert "Pin workers of --scheduler" in capsys.readouterr().err


def test_a_worker_of_another_version_computes_nothing(tmp_path: Path) -> None:
    answer = remote.compute_block('{"version": "0.0.1"}')
    assert "Install the same version" in answer
