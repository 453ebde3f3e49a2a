"""Steps that are copied as a command line or as Python give the same steps and pixels again."""

from __future__ import annotations

import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image as Pillow
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.cli.arguments import parse
from kernelscope.engine.area import Area
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.request import Request, RunSettings
from kernelscope.engine.run import execute
from kernelscope.engine.step import Step
from kernelscope.files import read_image
from kernelscope.gui.model.replay import command_line, python
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Among, Volume
from kernelscope.library import functions
from kernelscope.schema.borders import Border
from tests.gui.helpers import load


def _picture(path: Path | None = None) -> Image:
    pixels = np.random.default_rng(1).integers(0, 256, (40, 30, 3), np.uint8)
    return Image.from_array(pixels, "noise", path)


def _requests() -> list[Request]:
    """Requests of every filter: defaults, each parameter with other values, each border."""
    found = []
    for id_, spec in filters.discover().items():
        found.append(Request.create(_picture(), id_))
        for parameter in spec.parameters:
            for value in parameter.variants(spec.defaults()[parameter.name], 3):
                found.append(Request.create(_picture(), id_, {parameter.name: value}))
        found += [Request.create(_picture(), id_, border=border) for border in spec.borders]
        found.append(Request.create(_picture(), id_, grey=True))
    area = Area.parse("polygon -2,0 20,5 9,33")
    found.append(Request.create(_picture(), "median", within=area))
    found.append(
        Request.create(
            _picture(), "mask", {"mask": ((-1, 0, 1), (-2, 0, 2), (-1, 0, 1)), "divisor": "one"}
        )
    )
    return found


def _settings(request: Request) -> RunSettings:
    return RunSettings(request.step, request.options)


def _line(*requests: Request) -> str:
    return command_line(requests[0].image, [_settings(each) for each in requests])


def _parse(text: str) -> list[Request]:
    words = shlex.split(text)
    assert words[:2] == ["kernelscope", "apply"]
    command = parse(words[2:])
    return [Request(_picture(), each, command.options) for each in command.recipe.steps]


@pytest.mark.slow
def test_commands_have_the_steps_that_they_were_made_from() -> None:
    requests = _requests()
    assert len(requests) > 100
    for request in requests:
        line = _line(request)
        (again,) = _parse(line)
        assert again.step == request.step, line


def test_commands_leave_out_defaults() -> None:
    image = _picture(Path("a folder/my picture.png"))
    request = Request.create(image, "median", {"size": 5})
    assert _line(request) == (
        "kernelscope apply median 'a folder/my picture.png' output.png --size=5"
    )


def test_steps_are_chained_and_the_device_is_that_of_the_last() -> None:
    first = Request.create(_picture(), "gaussian_noise")
    last = Request.create(
        _picture(), "median", border=Border.WRAP, device=Device.CPU, level="serial"
    )
    text = _line(first, last)
    steps = _parse(text)
    assert [each.step for each in steps] == [first.step, last.step]
    assert steps[0].options == last.options


@pytest.mark.slow
@pytest.mark.parametrize("mode", [pytest.param("RGB", marks=pytest.mark.exhaustive), "RGBA"])
def test_the_program_writes_the_same_pixels(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "in.png"
    picture = Pillow.fromarray(_picture().pixels).convert(mode)
    if mode == "RGBA":
        picture.putalpha(picture.getchannel("R"))
    picture.save(path)
    image = read_image(path)
    requests = [
        Request.create(image, "mean", {"size": 5}, border=Border.WRAP),
        Request.create(
            image,
            "mask",
            {"mask": ((-1, 0, 1),) * 3, "divisor": "one"},
            grey=True,
            device=Device.CPU,
        ),
    ]
    program = tmp_path / "again.py"
    program.write_text(python(image, [_settings(each) for each in requests]), encoding="utf-8")
    subprocess.run([sys.executable, program], cwd=tmp_path, check=True)
    backend = CpuBackend()
    for request in requests:
        image = execute(Request(image, request.step, request.options), {"cpu": backend}).image
    backend.close()
    assert (read_image(tmp_path / "output.png").pixels == image.pixels).all()


def test_programs_of_every_setting_have_its_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is computed: each setting of a filter has code to compile."""
    monkeypatch.chdir(tmp_path)
    Pillow.fromarray(_picture().pixels).save("input.png")
    taken: list[tuple[Step, Any]] = []

    def take(call: object, step: Step, given: Any) -> Any:
        taken.append((step, given))
        return _picture().pixels

    monkeypatch.setattr(functions._Call, "_run", take)
    monkeypatch.setattr(functions, "key_of", lambda *_: None)  # no quicker way
    requests = _requests()
    for request in requests:
        exec(compile(python(_picture(), [_settings(request)]), "again.py", "exec"), {})
        step, given = taken.pop()
        assert step == request.step
        options = request.options
        assert (given["device"], given["level"]) == (options.device, options.level), step
    assert not taken


def test_programs_are_short() -> None:
    noise = Request.create(_picture(), "gaussian_noise", {"sigma": 0.1})
    nlm = Step.create("nlm", border=Border.WRAP)
    last = RunSettings(nlm, RunOptions(Device.CPU, "serial"))
    lines = python(_picture(), [_settings(noise), last]).splitlines()
    assert lines[-3:] == [
        "pixels = ks.gaussian_noise(pixels, sigma=0.1)",
        "pixels = ks.nlm(pixels, border='wrap', device='cpu', level='serial')",
        "write_image(image.like(pixels), Path('output.png'))",
    ]


def test_commands_of_volumes_have_their_place_in_the_file() -> None:
    """The command reads the same volumes, and cuts the same slices."""
    voxels = np.zeros((4, 5, 6), np.uint16)

    def scan(*volumes: tuple[str, tuple[Among, ...]]) -> Scan:
        made = (Volume.from_array(voxels, name, path=Path(name)) for name, _ in volumes)
        places = (among for _, among in volumes)
        return Scan(tuple(replace(v, among=a) for v, a in zip(made, places, strict=True)))

    def line(source: Scan, *steps: Step) -> str:
        return command_line(source, [RunSettings(each, RunOptions()) for each in steps])

    nlm = Step.create("mri_nlm")
    stack = scan(("a b.tif", (Among("T", 1, 3), Among("C", 2, 4))))
    text = line(stack, nlm)
    assert text == "kernelscope apply mri-nlm 'a b.tif' output.tif --volume=7"
    command = parse(shlex.split(text)[2:])
    assert (command.source, command.volume) == (Path("a b.tif"), (7,))
    assert command.recipe.steps[0] == nlm
    two = line(scan(("t1.nii.gz", ()), ("t2.nii.gz", ())), nlm)
    assert two == "kernelscope apply mri-nlm t1.nii.gz output.nii.gz --component=t2.nii.gz"
    assert parse(shlex.split(two)[2:]).component == (Path("t2.nii.gz"),)
    slices = line(scan(("dicom", ())), Step.create("median", axis=2))
    assert slices == "kernelscope apply median dicom output.nii --axis=x"
    assert parse(shlex.split(slices)[2:]).axis == "x"
    several = line(scan(("a.nii", (Among("V", 0, 3),)), ("b.nii", (Among("V", 4, 5),))), nlm)
    assert parse(shlex.split(several)[2:]).volume == (1, 5)


def test_the_window_copies_both(qtbot: QtBot, window: MainWindow, picture: Path) -> None:
    load(qtbot, window, picture)
    window.session.set_filter("median")
    window.actions_["copyCommand"].trigger()
    text = QGuiApplication.clipboard().text()
    assert _parse(text)[0].step.filter.id == "median"
    assert str(picture) in text
    assert "in the clipboard" in window.statusBar().currentMessage()
    window.actions_["copyPython"].trigger()
    assert "pixels = ks.median(pixels)" in QGuiApplication.clipboard().text()
