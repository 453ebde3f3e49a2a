"""The command ``phantom``: makes an MRI volume of a head, with a noise-free version."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kernelscope.base.errors import InvalidParameter, OutOfMemory
from kernelscope.base.text import PROGRAM
from kernelscope.cli.common import STATUS, Parser, Speaker, add_options, whole_number
from kernelscope.images.phantom import (
    BRIGHTEST,
    Contrast,
    ScannerNoise,
    Shape,
    Voxel,
    add_noise,
    affine,
    head,
)
from kernelscope.images.volume import Volume, check_shape

_WEIGHTINGS = {contrast.removesuffix("w").lower(): contrast for contrast in Contrast}


def phantom(arguments: list[str]) -> int:
    """Make a head phantom: an MRI volume with a known noise-free version."""
    options = _parser().parse_args(arguments)
    from kernelscope.files.volumes import write_volume

    paths = _checked_paths(options)
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


def _checked_paths(options: argparse.Namespace) -> list[Path]:
    """Return the files to write; refuse, before the head is made, those that cannot be written."""
    from kernelscope.files.volumes import check_write_volume
    from kernelscope.files.write_errors import resolved

    paths = [path for path in (options.output, options.truth) if path]
    if options.truth and resolved(options.truth) == resolved(options.output):
        raise InvalidParameter(
            f"{options.truth} would be written twice.", "Choose two different files."
        )
    check_shape(options.size, "phantom")
    for path in paths:
        # this head has no position in a scanner: formats without one lose nothing
        nothing = np.zeros((1, 1, 1), np.float32)
        check_write_volume(Volume.from_array(nothing, path.name, spacing=options.voxel), path)
    return paths


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog=f"{PROGRAM} phantom",
        description="Makes a head of ellipsoids with the contrast and the noise of MRI, and "
        "writes it as 32-bit floats. The same numbers make the same file.",
        epilog=STATUS,
    )
    text = f"""
        output OUTPUT
            file to write: .nii.gz, .nii, .tif or .npy
        --size N
            voxels a side, or WIDTHxHEIGHTxDEPTH (default: 181x217x181)
        --voxel MM
            size of a voxel in millimetres, WIDTHxHEIGHTxDEPTH like 0.94x0.94x4: the head has its
            natural size, and parts outside the volume are cut off (default: voxels of 1 mm, and the
            head fills the volume)
        --weighting
            contrast (weighting) of the scan (default: %(default)s)
        --noise
            kind of noise (default: %(default)s); varying-rician is three times as strong in the
            middle as at the corners
        --sigma X
            standard deviation of the noise; the brightest tissue is {BRIGHTEST:g} (default:
            %(default)g; 0: no noise)
        --seed N
            another number gives other noise (default: %(default)s)
        --truth FILE
            write the head without noise
        --quiet
            print nothing but errors
        """
    add_options(
        parser,
        text,
        size={"type": _size, "default": (181, 217, 181)},
        voxel={"type": _voxel},
        weighting={"choices": _WEIGHTINGS, "default": "t1"},
        noise={"choices": [each.value for each in ScannerNoise], "default": ScannerNoise.RICIAN},
        sigma={"type": float, "default": 20.0},
        seed={"type": whole_number, "default": 0},
    )
    return parser


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
