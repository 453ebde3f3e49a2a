"""The command line for volumes: ``apply`` to them, and ``phantom``, which makes one."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kernelscope.cli.common import (
    INPUT,
    PROGRAM,
    STATUS,
    Parser,
    Speaker,
    StatusLine,
    file_path,
    namesakes,
    nan_option,
    run_steps,
    whole_number,
)
from kernelscope.errors import (
    ImageReadError,
    InvalidParameter,
    LossyFormat,
    OutOfMemory,
    SeveralVolumes,
)
from kernelscope.images.phantom import (
    BRIGHTEST,
    Contrast,
    Noise,
    Shape,
    Voxel,
    add_noise,
    affine,
    head,
)
from kernelscope.images.volume import AXES, Volume, check_reference, check_shape
from kernelscope.manual import filter_name
from kernelscope.spec.samples import Kind

if TYPE_CHECKING:
    from kernelscope.engine.recipe import Recipe
    from kernelscope.engine.result import Result
    from kernelscope.images.scan import Scan

_WEIGHTINGS = {contrast.removesuffix("w").lower(): contrast for contrast in Contrast}


def apply_to_volumes(recipe: Recipe, options: argparse.Namespace) -> int:
    """Filter one volume, or several of the same head together.

    Parameters
    ----------
    recipe : Recipe
        Filters of pictures run slice by slice.
    options : Namespace
        Those of ``apply``.
    """
    from kernelscope.engine.chain import shapes
    from kernelscope.files import write_recipe
    from kernelscope.files.volumes import unkept_of_volume, write_volume

    if options.axis:
        recipe = _across(recipe, options.axis)
    outputs = _outputs(options)
    scan = _read_scan(options)
    with nan_option():
        reference = _read_reference(options.reference, scan.volumes[0], options.nan)
    shapes(recipe, scan)
    _check_outputs(scan, outputs, options)
    status = StatusLine(not (options.quiet or options.verbose))
    say = Speaker(options.quiet)
    say.notices(scan.notices)
    say.notices(_better_for_volumes(recipe))
    result = run_steps(recipe, scan, reference, options, status, say)
    made = list(zip(result.scan.volumes, outputs, strict=True))
    changes = _changes(result, options)
    for volume, path in (*made, *((change, path) for change, path, _ in changes)):
        status.show(f"save {path.name}")
        write_volume(volume, path, lossy=options.lossy)
    status.clear()
    for volume, path in made:
        say.notices(unkept_of_volume(volume, path))
    say.result(str(outputs[0]), result)
    for volume, path in zip(scan.volumes[1:], outputs[1:], strict=True):
        say.line(f"{path}: from {volume.title}")
    for _, path, of in changes:
        say.line(f"{path}: {of}")
    if options.save_recipe:
        write_recipe(recipe, options.save_recipe)
    return 0


def _better_for_volumes(recipe: Recipe) -> list[str]:
    """Point from filters that go slice by slice to those that see the whole volume."""
    found = []
    for step in recipe.steps:
        for other in namesakes(step.filter, Kind.VOLUME):
            if step.filter.kind is Kind.PICTURE:
                found.append(
                    f"{filter_name(step.filter)} filters each slice alone; {filter_name(other)} "
                    "compares voxels of the whole volume."
                )
    return found


def _across(recipe: Recipe, axis: str) -> Recipe:
    """Return the recipe with filters of pictures going along `axis`."""
    if not any(step.filter.kind is Kind.PICTURE for step in recipe.steps):
        raise InvalidParameter(
            f"{recipe.steps[0].filter.name} has no --axis: it does not go slice by slice.",
            "Leave it out.",
        )
    return replace(
        recipe, steps=tuple(replace(step, axis=AXES.index(axis)) for step in recipe.steps)
    )


def _changes(result: Result, options: argparse.Namespace) -> list[tuple[Volume, Path, str]]:
    """Return what the options ask for of the first volume, where it goes and what it is."""
    output, reference = result.scan.volumes[0], result.request.reference
    found = []
    if options.residual:
        change = output.minus(result.request.scan.volumes[0])
        of = f"output - input of {result.request.step.filter.name}"
        found.append((change, options.residual, of))
    if options.difference and isinstance(reference, Volume):
        found.append((output.minus(reference), options.difference, "output - reference"))
    return found


# Files --------------------------------------------------------------------------------


def _read_scan(options: argparse.Namespace) -> Scan:
    from kernelscope.files.volumes import read_volume
    from kernelscope.images.scan import Scan

    paths = [options.input, *options.component]
    numbers = options.volume or [None]
    if len(numbers) == 1:
        numbers = numbers * len(paths)
    if len(numbers) != len(paths):
        raise InvalidParameter(
            f"--volume has {len(numbers)} numbers for {len(paths)} files.",
            "Give one for all files, or one for each.",
        )
    try:
        with nan_option():
            volumes = [
                read_volume(path, number, nan=options.nan)
                for path, number in zip(paths, numbers, strict=True)
            ]
    except SeveralVolumes as error:
        raise ImageReadError(error.message, f"{error.hint} That is --volume N.") from None
    if options.float:
        volumes = [volume.with_voxels(volume.voxels, as_float=True) for volume in volumes]
    return Scan(tuple(volumes))


def _read_reference(name: str | None, volume: Volume, nan: float | None) -> Volume | None:
    from kernelscope.files.volumes import read_volume

    if name is None:
        return None
    reference = volume if name == INPUT else read_volume(name, nan=nan)
    check_reference(volume, reference)
    return reference


def _outputs(options: argparse.Namespace) -> list[Path]:
    """Return where to write INPUT's result and those of the components."""
    from kernelscope.files.atomic import resolved
    from kernelscope.files.volumes import beside

    output: Path = options.output
    inputs: list[Path] = [options.input, *options.component]
    named: list[Path] = options.output_component
    if named and len(named) != len(options.component):
        raise InvalidParameter(
            f"There are {len(named)} --output-component for {len(options.component)} --component.",
            "Name one for each, or none.",
        )
    names = [resolved(path).name for path in options.component]
    outputs = [output, *(named or [beside(output, name) for name in names])]
    changes = [path for path in (options.residual, options.difference) if path]
    places = [resolved(path) for path in (*outputs, *changes)]
    for number, place in enumerate(places):
        if place in places[:number]:
            raise InvalidParameter(
                f"{[*outputs, *changes][number]} would be written twice.",
                "Name the outputs with --output-component.",
            )
        of_component = 0 < number < len(outputs)
        if of_component and not named and place in [resolved(path) for path in inputs]:
            raise InvalidParameter(
                f"{outputs[number]}, where a component would go, is an input.",
                "Name the outputs with --output-component.",
            )
    return outputs


def _check_outputs(scan: Scan, outputs: Sequence[Path], options: argparse.Namespace) -> None:
    """Refuse before a long run what would be refused after it."""
    from kernelscope.files.atomic import check_target
    from kernelscope.files.volumes import check_write_volume

    for volume, path in zip(scan.volumes, outputs, strict=True):
        try:
            check_write_volume(volume, path, lossy=options.lossy)
        except LossyFormat as error:
            raise LossyFormat(error.message, f"{error.hint} Or add --lossy.") from None
    for path in (options.residual, options.difference):
        if path:
            check_write_volume(scan.volumes[0], path, lossy=options.lossy)
    if options.save_recipe:
        check_target(options.save_recipe)


# phantom ------------------------------------------------------------------------------


def phantom(arguments: list[str]) -> int:
    """Make a head phantom: an MRI volume whose truth is known."""
    parser = Parser(
        prog=f"{PROGRAM} phantom",
        description="Makes a head of ellipsoids with the contrast and the noise of MRI, and "
        "writes it as 32-bit floats. The same numbers make the same file.",
        epilog=STATUS,
    )
    parser.add_argument(
        "output",
        metavar="OUTPUT",
        type=file_path,
        help="file to write: .nii.gz, .nii, .tif or .npy",
    )
    parser.add_argument(
        "--size",
        metavar="N",
        type=_size,
        default=(181, 217, 181),
        help="voxels a side, or WIDTHxHEIGHTxDEPTH (default: 181x217x181)",
    )
    parser.add_argument(
        "--voxel",
        metavar="MM",
        type=_voxel,
        help="size of a voxel in millimetres, WIDTHxHEIGHTxDEPTH like 0.94x0.94x4: the head is as "
        "large as a head is, and what lies outside of the volume is cut off (default: voxels of "
        "1 mm, and the head fills the volume)",
    )
    parser.add_argument(
        "--weighting",
        choices=_WEIGHTINGS,
        default="t1",
        help="what the scanner weights (default: %(default)s)",
    )
    parser.add_argument(
        "--noise",
        choices=[noise.value for noise in Noise],
        default=Noise.RICIAN.value,
        help="kind of noise (default: %(default)s); varying-rician is three times as strong in "
        "the middle as at the corners",
    )
    parser.add_argument(
        "--sigma",
        metavar="X",
        type=float,
        default=20.0,
        help=f"standard deviation of the noise; the brightest tissue is {BRIGHTEST:g} "
        "(default: %(default)g; 0: no noise)",
    )
    parser.add_argument(
        "--seed",
        metavar="N",
        type=whole_number,
        default=0,
        help="another number gives other noise (default: %(default)s)",
    )
    parser.add_argument(
        "--truth", metavar="FILE", type=file_path, help="write the head without noise"
    )
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    options = parser.parse_args(arguments)
    from kernelscope.files.atomic import resolved
    from kernelscope.files.volumes import check_write_volume, write_volume

    paths = [path for path in (options.output, options.truth) if path]
    if options.truth and resolved(options.truth) == resolved(options.output):
        raise InvalidParameter(f"{options.truth} would be written twice.", "Name two files.")
    check_shape(options.size, "phantom")
    for path in paths:
        # Nobody measured where this head lies: formats without a place lose nothing.
        nothing = np.zeros((1, 1, 1), np.float32)
        spacing = options.voxel or (1.0, 1.0, 1.0)
        check_write_volume(Volume.from_array(nothing, path.name, spacing=spacing), path)
    say = Speaker(options.quiet)
    contrast = _WEIGHTINGS[options.weighting]
    try:
        truth = head(options.size, [contrast], voxel=options.voxel).truth[contrast]
        noisy = add_noise(truth, options.noise, options.sigma, options.seed).voxels
    except MemoryError:
        raise OutOfMemory(
            "There is not enough memory for a phantom of this size.", "Choose a smaller --size."
        ) from None
    for voxels, path in zip((noisy, truth), paths, strict=False):
        write_volume(_head(voxels, path, options.voxel), path, lossy=True)
    size = "×".join(map(str, reversed(options.size)))
    strength = f"{options.noise} noise of sigma {options.sigma:g}, seed {options.seed}"
    if options.voxel:
        size += " voxels of " + "×".join(f"{side:g}" for side in reversed(options.voxel)) + " mm"
    else:
        size += " voxels"
    say.line(f"{options.output}: {contrast} head of {size}, {strength}")
    if options.truth:
        say.line(f"{options.truth}: the same without noise")
    return 0


def _head(voxels: NDArray[np.float32], path: Path, voxel: Voxel | None) -> Volume:
    spacing = voxel or (1.0, 1.0, 1.0)
    return Volume.from_array(voxels, path.name, spacing=spacing, affine=affine(voxel))


def _voxel(text: str) -> Voxel:
    """Read ``1`` or ``0.94x0.94x4``, width first; return depth, height and width."""
    try:
        sides = [float(side) for side in re.split("[x×]", text)]
    except ValueError:
        sides = []
    if len(sides) not in (1, 3) or not all(0 < side <= 1000 for side in sides):
        raise argparse.ArgumentTypeError(f"{text} is not a size in millimetres like 0.94x0.94x4")
    width, height, depth = sides * 3 if len(sides) == 1 else sides
    return depth, height, width


def _size(text: str) -> Shape:
    """Read ``181`` or ``181x217x181``, width first; return depth, height and width."""
    sides = [whole_number(side) for side in re.split("[x×]", text)]
    if len(sides) not in (1, 3) or not all(sides):
        raise argparse.ArgumentTypeError(f"{text} is not a size like 181 or 181x217x181")
    width, height, depth = sides * 3 if len(sides) == 1 else sides
    return depth, height, width
