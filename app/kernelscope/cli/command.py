"""The parsed command ``apply``; only `arguments` uses `argparse`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernelscope.engine.options import RunOptions
from kernelscope.engine.recipe import Recipe

INPUT = "input"
"""Stands for the file of a reference: INPUT itself."""


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """The files to read, and how to read them.

    Attributes
    ----------
    source : Path
        A picture or a volume.
    components : tuple of Path
        Volumes of the same head, filtered together with `source`.
    volumes : tuple of int
        Numbers of the volumes in their files, from 1: none, one for all, or one for each.
    reference : str or None
        File that results are compared with, or `INPUT`.
    nan : float or None
        Replaces NaN; without it, files with NaN are refused.
    as_float : bool
        Keep 32-bit floats rather than rounding to the type of the file.
    axis : str or None
        Axis that slices of a volume are perpendicular to.
    """

    source: Path
    components: tuple[Path, ...] = ()
    volumes: tuple[int, ...] = ()
    reference: str | None = None
    nan: float | None = None
    as_float: bool = False
    axis: str | None = None


@dataclass(frozen=True, kw_only=True)
class OutputFiles:
    """The files to write.

    Attributes
    ----------
    result : Path
    components : tuple of Path
        For the components of the inputs; empty for names derived from `result`.
    residual, difference : Path or None
        For the change made by the last step, and the remaining error.
    recipe : Path or None
    lossy : bool
        Whether a format may lose something.
    quality : int or None
        That of a JPEG, 1 to 100.
    """

    result: Path
    components: tuple[Path, ...] = ()
    residual: Path | None = None
    difference: Path | None = None
    recipe: Path | None = None
    lossy: bool = False
    quality: int | None = None


@dataclass(frozen=True, kw_only=True)
class ApplyCommand:
    """The steps (`recipe`), the run options (`options`), and the files.

    Attributes
    ----------
    memory : int or None
        Bytes that the process may take; without it, files are held in memory as a whole.
    local_cluster : int or None
        Worker processes of this machine that filter in blocks.
    scheduler : str or None
        Address of a Dask cluster whose workers do.
    tls_ca_file, tls_cert, tls_key : Path or None
        For a scheduler that wants TLS.
    gpus : tuple of int or None
        Numbers of the GPUs to use; None for the default.
    quiet, verbose, json : bool
        Print nothing but errors; log every stage; print a report as JSON.
    """

    recipe: Recipe
    options: RunOptions
    files: Inputs
    outputs: OutputFiles
    memory: int | None = None
    local_cluster: int | None = None
    scheduler: str | None = None
    tls_ca_file: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    gpus: tuple[int, ...] | None = None
    quiet: bool = False
    verbose: bool = False
    json: bool = False
