"""Files as tasks: the text that is sent, who writes the targets, and leftovers."""

from __future__ import annotations

import inspect
import json
import math
import os
import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kernelscope
from kernelscope.base.once import once
from kernelscope.big.batch import task
from kernelscope.big.batch.item import PARTS, FileState, Item
from kernelscope.big.batch.journal import Journal
from kernelscope.big.batch.task import (
    OPEN,
    TaskSettings,
    describe,
    filter_file,
    finish,
    times_begun,
)
from kernelscope.big.workers import worker_tools
from kernelscope.engine.backend import close_all
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.engine.step import Step
from kernelscope.files import read_image, write_image
from kernelscope.files.volumes import read_volume, write_volume
from kernelscope.images.image import Image
from kernelscope.images.judging.metrics import VolumeQuality
from kernelscope.images.volume import Volume

RECIPE = Recipe((Step.create("mean", {}),))


@pytest.fixture(autouse=True)
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """End the backends of this process, which a worker keeps to its end."""
    tools = once(inspect.unwrap(worker_tools))  # closed at the end, unlike those of a process
    monkeypatch.setattr(task, "worker_tools", tools)
    yield
    close_all(tools(1)[0].values())


@pytest.fixture
def item(tmp_path: Path) -> Item:
    """A picture with a step, next to its reference."""
    (tmp_path / "in").mkdir()
    pixels = np.zeros((12, 16), np.uint8)
    pixels[:, 8:] = 90
    write_image(Image.from_array(pixels), tmp_path / "in/a.png")
    write_image(Image.from_array(pixels), tmp_path / "ideal.png")
    return Item(tmp_path / "in/a.png", tmp_path / "out/below/a.png", tmp_path / "ideal.png")


@pytest.fixture
def settings(tmp_path: Path) -> TaskSettings:
    parts = tmp_path / "out" / PARTS
    parts.mkdir(parents=True)
    (parts / OPEN).touch()
    return TaskSettings(RECIPE, RunOptions(device=Device.CPU), parts, threads=1)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    journal = Journal(tmp_path / "out", RECIPE)
    yield journal
    journal.close()


def altered(item: Item, settings: TaskSettings, **what: Any) -> str:
    """Return the task of a file with other values."""
    return json.dumps({**json.loads(describe(7, item, settings)), **what})


def reason(answer: str) -> str:
    plain = json.loads(answer)
    return str(plain.get("reason") or plain["outcome"]["reason"])


def test_the_client_alone_writes_the_target(
    item: Item, settings: TaskSettings, journal: Journal
) -> None:
    answer = filter_file(describe(7, item, settings))
    assert not item.target.exists()
    assert "done" not in journal.path.read_text("utf-8")
    outcome = finish(item, answer, settings, journal)
    assert outcome.status is FileState.DONE, outcome.reason
    row = read_image(item.target).pixels[5]
    assert [*row] == [0] * 7 + [30, 60] + [90] * 7
    assert outcome.size == "16×12"
    assert outcome.filtered > 0
    assert outcome.before is not None
    assert outcome.before.psnr == math.inf
    assert outcome.quality is not None
    assert 20 < outcome.quality.psnr < 40
    lines = map(json.loads, journal.path.read_text("utf-8").splitlines()[1:])
    assert [next(iter(line)) for line in lines] == ["begin", "done"]
    assert [path.name for path in settings.parts.iterdir()] == [OPEN]


def test_folders_of_slices_are_replaced_if_they_hold_nothing_else(
    tmp_path: Path, settings: TaskSettings, journal: Journal
) -> None:
    """As without a cluster: one that holds other things is left as it is."""
    voxels = np.random.default_rng(1).integers(0, 255, (5, 12, 10), np.uint8)
    (tmp_path / "in").mkdir()
    head = Item(tmp_path / "in/head.npy", tmp_path / "out/head.pngs")
    text = describe(3, head, settings)
    for depth in (5, 3):
        write_volume(Volume.from_array(voxels[:depth], "head"), head.source)
        assert finish(head, filter_file(text), settings, journal).status is FileState.DONE
        assert len(list(head.target.iterdir())) == depth
        assert read_volume(head.target).voxels.shape == (depth, 12, 10)
    assert {path.name for path in head.target.parent.iterdir()} == {
        "head.pngs", settings.parts.name, journal.path.name,
    }  # fmt: skip
    (head.target / "mine.txt").write_text("mine", encoding="utf-8")
    outcome = finish(head, filter_file(text), settings, journal)
    assert outcome.status is FileState.FAILED
    assert "this folder holds other things, such as mine.txt" in outcome.reason
    assert len(list(head.target.iterdir())) == 4


@pytest.mark.skipif(os.name == "nt", reason="names are texts there")
def test_names_need_not_be_utf_8(item: Item, settings: TaskSettings, journal: Journal) -> None:
    odd = item.source.with_name(os.fsdecode(b"\xff.png"))
    item.source.rename(odd)
    named = Item(odd, item.target.with_name(odd.name), item.reference)
    outcome = finish(named, filter_file(describe(7, named, settings)), settings, journal)
    assert outcome.status is FileState.DONE, outcome.reason
    assert named.target.exists()


def test_the_figures_of_a_volume_come_back(
    tmp_path: Path, settings: TaskSettings, journal: Journal
) -> None:
    (tmp_path / "in").mkdir()
    dark = np.full((9, 12, 10), -3, np.float32)
    for name, voxels in (("head", dark), ("ideal", dark + np.float32(5))):
        write_volume(Volume.from_array(voxels, name), tmp_path / f"in/{name}.npy")
    head = Item(tmp_path / "in/head.npy", tmp_path / "out/head.npy", tmp_path / "in/ideal.npy")
    outcome = finish(head, filter_file(describe(3, head, settings)), settings, journal)
    assert isinstance(outcome.before, VolumeQuality), (outcome.note, outcome.reason)
    assert outcome.before.bias == -5


def test_a_task_that_is_done_twice_makes_one_result(
    item: Item, settings: TaskSettings, journal: Journal
) -> None:
    """A worker was given up, another one did its task, and the first one was alive after all."""
    text = describe(7, item, settings)
    late, answer = filter_file(text), filter_file(text)
    assert finish(item, answer, settings, journal).status is FileState.DONE
    made = item.target.stat().st_mtime_ns
    assert times_begun(7, settings) == 1
    assert times_begun(77, settings) == 0
    part = settings.parts / json.loads(late)["part"] / item.target.name
    assert part.read_bytes() == item.target.read_bytes()
    filter_file(text)
    assert item.target.stat().st_mtime_ns == made
    assert journal.path.read_text("utf-8").count('"done"') == 1


def test_a_worker_that_is_late_leaves_nothing(item: Item, settings: TaskSettings) -> None:
    (settings.parts / OPEN).unlink()
    filter_file(describe(7, item, settings))
    assert not settings.parts.exists()
    assert "cannot write to" in reason(filter_file(describe(7, item, settings)))
    assert list(settings.parts.parent.iterdir()) == []


def test_only_a_name_and_a_text_are_sent(item: Item, settings: TaskSettings) -> None:
    sent = pickle.dumps(filter_file)
    assert len(sent) < 100
    assert b"kernelscope.big.batch.task" in sent
    task = json.loads(describe(7, item, settings))
    assert Recipe.from_json(task["recipe"]) == RECIPE
    assert task["source"] == str(item.source)


def test_a_worker_of_another_version_filters_nothing(item: Item, settings: TaskSettings) -> None:
    answer = filter_file(altered(item, settings, version="0.0.1"))
    text = reason(answer)
    assert f"has Kernelscope {kernelscope.__version__}, and the batch 0.0.1" in text
    assert "Install the same version" in text
    assert [path.name for path in settings.parts.iterdir()] == [OPEN]


def test_files_of_another_machine_are_named(
    item: Item, settings: TaskSettings, journal: Journal
) -> None:
    item.source.unlink()
    assert "a.png: there is no such file on" in reason(filter_file(describe(7, item, settings)))


def test_a_result_on_another_machine_is_no_result(
    item: Item, settings: TaskSettings, journal: Journal
) -> None:
    answer = filter_file(describe(7, item, settings))
    for part in settings.parts.rglob("*.png"):
        part.unlink()
    outcome = finish(item, answer, settings, journal)
    assert outcome.status is FileState.FAILED
    assert "a worker's result is not here" in outcome.reason
    assert "folders that all machines share" in outcome.reason
    assert not item.target.exists()
    assert "done" not in journal.path.read_text("utf-8")


def test_a_bad_file_leaves_no_part(item: Item, settings: TaskSettings, journal: Journal) -> None:
    item.source.write_bytes(b"no picture")
    answer = filter_file(describe(7, item, settings))
    assert "a.png: this is no image" in reason(answer)
    assert finish(item, answer, settings, journal).status is FileState.FAILED
    assert [path.name for path in settings.parts.iterdir()] == [OPEN]


def test_a_bad_file_does_not_hold_up_the_next(item: Item, settings: TaskSettings) -> None:
    """The worker's turn to filter ends with the failure."""
    deep = np.full((12, 16), 999, np.uint16)
    write_image(Image.from_array(deep), item.source.with_suffix(".tif"))
    lossy = Item(item.source.with_suffix(".tif"), item.target.with_suffix(".jpg"))
    assert "cannot keep" in reason(filter_file(describe(8, lossy, settings)))
    broken = replace(settings, options=RunOptions(Device.CPU, "none of these"))
    assert json.loads(filter_file(describe(7, item, broken)))["outcome"]["status"] == "failed"
    assert json.loads(filter_file(describe(7, item, settings)))["outcome"]["status"] == "done"
