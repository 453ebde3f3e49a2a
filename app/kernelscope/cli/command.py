"""The parsed command ``apply``; only `arguments` uses `argparse`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernelscope.engine.options import RunOptions
from kernelscope.engine.recipe import Recipe
from kernelscope.schema.samples import Levels

INPUT = "input"  # stands for the file of a reference: INPUT itself


@dataclass(frozen=True, kw_only=True)
class ApplyCommand:
    recipe: Recipe
    options: RunOptions
    source: Path  # a picture or a volume
    result: Path
    component: tuple[Path, ...] = ()  # volumes of the same head, filtered together with `source`
    volume: tuple[int, ...] = ()
    """Numbers of the volumes in their files, from 1: none, one for all, or one for each."""
    reference: str | None = None  # file that results are compared with, or `INPUT`
    nan: float | None = None  # replaces NaN; without it, files with NaN are refused
    levels: Levels | None = None
    """Black and white of floats and volumes; by default those of the samples."""
    as_float: bool = False  # keep 32-bit floats rather than rounding to the type of the file
    axis: str | None = None  # axis that slices of a volume are perpendicular to
    output_component: tuple[Path, ...] = ()
    """For the results of the components; empty for names derived from `result`."""
    # For the change made by the last step, and the remaining error.
    residual: Path | None = None
    difference: Path | None = None
    save_recipe: Path | None = None
    lossy: bool = False  # whether a format may lose something
    quality: int | None = None  # that of a JPEG, 1 to 100
    memory: int | None = None
    """Bytes that the process may take; without it, files are held in memory as a whole."""
    local_cluster: int | None = None  # worker processes of this machine that filter in blocks
    scheduler: str | None = None  # address of a Dask cluster whose workers do
    # For a scheduler that wants TLS.
    tls_ca_file: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    named: tuple[Path, Path] | None = None
    """Input and output as the user named them, where files stand for pipes."""
    gpu: tuple[int, ...] | None = None  # numbers of the GPUs to use; None for the default
    # Print nothing but errors; log every stage; print a report as JSON.
    quiet: bool = False
    verbose: bool = False
    json: bool = False
