"""The steps to an output as a command line, or as Python: to repeat it, or to filter many files."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from kernelscope.base.text import PROGRAM
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.request import RunSettings
from kernelscope.engine.step import ESTIMATE, Step
from kernelscope.images.image import Image
from kernelscope.images.levels import own_levels_of
from kernelscope.images.scan import Scan
from kernelscope.images.volume import AXES, Volume
from kernelscope.schema.samples import Kind
from kernelscope.teach.manual import filter_name, option_of

_INPUT, _OUTPUT = "input.png", "output.png"
"""Stand for a picture that has no file, and for a result, which has none yet."""

_VOLUME = ".nii"  # suffix of the same for volumes
_KEPT = (".nii.gz", ".ome.tiff", ".ome.tif", ".tiff", ".tif", ".ome.zarr", ".npy")
"""Suffixes that the result of a volume has as well; of others not all can be written."""


def command_line(source: Image | Scan, steps: Sequence[RunSettings]) -> str:
    """Return the command that applies the steps, with the device and level of the last one."""
    volumes = source.volumes if isinstance(source, Scan) else ()
    names, image = (_INPUT, _OUTPUT), volumes[0] if isinstance(source, Scan) else source
    if volumes:
        suffix = next((each for each in _KEPT if image.title.lower().endswith(each)), _VOLUME)
        names = f"input{_VOLUME}", f"output{suffix}"
    first, *others = [_words(each.step) for each in steps]
    words = [PROGRAM, "apply", first[0], str(image.path or names[0]), names[1], *first[1:]]
    words += [f"--component={each.path or names[0]}" for each in volumes[1:]]
    if any(each.among for each in volumes):
        words.append(f"--volume={','.join(str(_number(each)) for each in volumes)}")
    axes = {each.step.axis for each in steps if each.step.filter.kind is Kind.PICTURE}
    words += [f"--axis={AXES[axis]}" for axis in axes if volumes and axis]
    words += _option_words(_place(steps[-1].options))
    words += [f"--{name}={number!r}" for name, number in _levels(image).items()]
    for step in others:
        words += [":", *step]
    return shlex.join(words)


def python(image: Image, steps: Sequence[RunSettings]) -> str:
    """Return a program that applies the steps, and estimates numbers that are still open."""
    lines = [
        "from pathlib import Path",
        "",
        "import kernelscope as ks",
        "from kernelscope.files import read_image, write_image",
        "",
        f"image = read_image(Path({str(image.path or _INPUT)!r}))",
        "pixels = image.pixels",
    ]
    for each in steps:
        arguments = ", ".join(["pixels", *_arguments(each, last=each is steps[-1])])
        if each.step.filter.unit_for(each.step.parameters).knows_white:
            levels = (f", {name}={number!r}" for name, number in _levels(image).items())
            arguments += "".join(levels)
        if image.has_alpha:
            arguments += ", alpha=True"
        lines.append(f"pixels = ks.{each.step.filter.id}({arguments})")
    lines.append(f"write_image(image.like(pixels), Path({_OUTPUT!r}))")
    return "\n".join(lines) + "\n"


def _number(volume: Volume) -> int:
    """Return the number of a volume in its file, counted from 1, the last axis the fastest."""
    number = 0
    for axis in volume.among:
        number = number * axis.count + axis.index
    return number + 1


def _levels(image: Image | Volume) -> dict[str, float]:
    levels = image.given_levels
    if levels is None or own_levels_of(image):
        return {}
    return {"white": levels.white} | ({"black": levels.black} if levels.black else {})


def _words(step: Step) -> list[str]:
    """Return the filter and the options that make the parser of the command find `step`."""
    words = filter_name(step.filter).split()
    for name in _typed(step):
        parameter = step.filter.parameter(name)
        text = ESTIMATE if name in step.estimates else parameter.format(step.parameters[name])
        # As one word, so that a value that begins with a minus is not taken for an option.
        words.append(f"{option_of(parameter)}={text}")
    return words + _option_words(_common(step))


def _option_words(given: Mapping[str, Any]) -> list[str]:
    return [f"--{name}" if value is True else f"--{name}={value}" for name, value in given.items()]


def _common(step: Step) -> dict[str, Any]:
    """Return the settings that steps of all filters have, unless they are the usual ones."""
    given: dict[str, Any] = {}
    if step.border is not step.filter.borders[0]:
        given["border"] = str(step.border)
    if step.grey:
        given["grey"] = True
    if step.within is not None:
        given["within"] = step.within.format()
    return given


def _place(options: RunOptions) -> dict[str, str]:
    device = {} if options.device is Device.AUTO else {"device": str(options.device)}
    return device | ({} if options.level is None else {"level": options.level})


def _typed(step: Step) -> list[str]:
    """Return the parameters to write: one that is written may imply values of others."""
    typed: list[str] = []
    while True:
        given: dict[str, Any] = {}
        for name in typed:
            given |= step.filter.parameter(name).implies
        given |= {name: step.values[name] for name in typed}
        found: Mapping[str, Any] = Step.create(step.filter.id, given).values
        missing = [
            each.name
            for each in step.filter.parameters
            if each.name not in typed and found[each.name] != step.values[each.name]
        ]
        if not missing:
            return [each.name for each in step.filter.parameters if each.name in typed]
        typed += missing


def _arguments(settings: RunSettings, *, last: bool) -> list[str]:
    step = settings.step
    given: dict[str, Any] = {}
    for name in _typed(step):
        parameter, value = step.filter.parameter(name), step.values[name]
        given[name] = parameter.format(value) if parameter.stored_as_text else value
    given |= _common(step) | (_place(settings.options) if last else {})
    return [f"{name}={value!r}" for name, value in given.items()]
