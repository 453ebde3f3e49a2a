"""The figures that the authors of the four sources reported, as ``source-figures.csv`` has them."""

from __future__ import annotations

import csv
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from app.bench.cases import CPU, GPU
from app.bench.rows import Row
from app.bench.statistics import short
from app.paths import RESOURCES


@dataclass(frozen=True)
class Source:
    """Who measured, and on what."""

    author: str
    hardware: str

    def describe(self) -> str:
        return f"{self.author}, measured on {self.hardware}."


SOURCES = {
    "F": Source(
        "Korčuška 2013", "Core 2 Duo E8400 + NVIDIA 210; Core 2 Duo T9300 + Quadro NVS 140M"
    ),
    "M": Source("parallel computing report no. 5", "Xeon Gold 6154 + RTX 2080 Ti"),
    "N": Source("Kasparidis, NLM report", "GTX 480; GT 640M"),
    "V": Source("Salari 2019", "GT 540M; Tesla S2050; GTX 660 Ti"),
}


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure of an author, and what of ours it stands beside.

    Attributes
    ----------
    source : str
        ``F``, ``M``, ``N`` or ``V``, see `SOURCES`.
    variant : str
        In the author's words.
    quantity : str
        ``time`` (in seconds), ``speed-up`` (over the CPU's serial code) or ``psnr`` (in
        decibels, of a photograph that is not ours).
    low, high : float
        The range that was reported; equal where it was one number.
    filter, parameters, channels
        As in `Row`; only those parameters that the figure is about.
    mask_side : int
        Side of the custom mask, whose weights the author does not tell; else 0.
    shape : tuple of int
        (height, width) or (depth, height, width).
    device, level : str
        Ours that do what theirs did; no level where theirs is none of ours.
    """

    source: str
    variant: str
    quantity: str
    low: float
    high: float
    filter: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    mask_side: int = 0
    channels: int = 1
    shape: tuple[int, ...]
    device: str
    level: str

    @property
    def origin(self) -> Source:
        return SOURCES[self.source]

    def is_about(self, row: Row) -> bool:
        """Tell whether it is about the filter and the data of a row, whatever ran it."""
        return (
            (self.filter, self.channels, self.shape) == (row.filter, row.channels, row.asked)
            and self.parameters.items() <= row.parameters.items()
            and (not self.mask_side or _side(row.parameters["mask"]) == self.mask_side)
        )

    def stands_beside(self, row: Row) -> bool:
        """Tell whether it is about what a row did, and where."""
        return (
            self.is_about(row)
            and not row.library
            and self.device == row.device
            and self.level in ("", row.level)
        )

    def describe(self) -> str:
        """Return ``2.6 to 2.7 s (Salari 2019: 1 gpu)``."""
        return f"{self.amount()} ({self.origin.author}: {self.variant})"

    def amount(self) -> str:
        """Return ``2.6 to 2.7 s``."""
        low, high, unit = self.low, self.high, _UNITS[self.quantity]
        if self.quantity == "time" and high < 1:
            low, high, unit = 1e3 * low, 1e3 * high, " ms"
        numbers = short(low, 4) if low == high else f"{short(low, 4)} to {short(high, 4)}"
        return f"{numbers}{unit}"


def _side(mask: str) -> int:
    """Return the side of a mask in the form that the command line takes."""
    return mask.count(";") + 1


_UNITS = {"time": " s", "speed-up": "×", "psnr": " dB"}

_QUANTITIES = {
    "time": "time",
    "speedup_over_cpu_serial": "speed-up",
    "psnr": "psnr",
}

_SECONDS = {"s": 1.0, "ms": 1e-3}

_PHANTOM = "256x256x37"
"""What source V calls its phantom: width, height, slices."""


@functools.cache
def all_figures() -> tuple[Figure, ...]:
    """Return every figure, in the order of the file."""
    with (RESOURCES / "source-figures.csv").open(encoding="utf-8", newline="") as file:
        return tuple(map(_figure, csv.DictReader(file)))


def beside(row: Row) -> Iterator[Figure]:
    """Yield the figures that stand beside a row."""
    return (figure for figure in all_figures() if figure.stands_beside(row))


def _figure(line: Mapping[str, str]) -> Figure:
    low, _, high = line["value"].partition("-")
    unit = _SECONDS.get(line["unit"], 1.0)
    about = {"F": _of_f, "M": _of_m, "N": _of_n, "V": _of_v}[line["source"]](line)
    return Figure(
        source=line["source"],
        quantity=_QUANTITIES[line["quantity"]],
        low=float(low) * unit,
        high=float(high or low) * unit,
        **about,
    )


def _shape(text: str) -> tuple[int, ...]:
    """Return (height, width) or (depth, height, width) of ``width x height x depth``."""
    return tuple(reversed([int(side) for side in text.split("x")]))


def _of_f(line: Mapping[str, str]) -> dict[str, Any]:
    side = int(line["mask_or_d_v"])
    custom = line["filter"] == "custom"
    return {
        "variant": f"{line['variant']} memory",
        "filter": "mask" if custom else line["filter"],
        "parameters": {"size": str(side)} if line["filter"] == "median" else {},
        "mask_side": side if custom else 0,
        "shape": _shape(line["size"]),
        "device": GPU,
        "level": line["variant"],
    }


def _of_m(line: Mapping[str, str]) -> dict[str, Any]:
    return {
        "variant": line["variant"],
        "filter": "mean",
        "parameters": {"size": line["mask_or_d_v"]},
        "shape": _shape(line["size"]),
        "device": CPU if line["variant"] == "serial" else GPU,
        "level": line["variant"],
    }


def _of_n(line: Mapping[str, str]) -> dict[str, Any]:
    variant = line["variant"]
    kind = variant.partition(" (")[0]
    return {
        "variant": variant,
        "filter": "nlm",
        "parameters": {"patch": line["mask_or_d_v"], "search": "image"},
        "shape": _shape(line["size"]),
        "device": GPU,
        "level": "host-partitions" if kind == "shared, host partitions" else kind,
    }


def _of_v(line: Mapping[str, str]) -> dict[str, Any]:
    """Their program on a GPU is none of our levels; two GPUs are nothing that we have."""
    _, dimensions, components, _ = line["filter"].split()
    patch, search = (part.partition("=")[2] for part in line["mask_or_d_v"].split())
    levels = {"cpu": (CPU, "serial"), "1 gpu": (GPU, ""), "2 gpus": ("gpus", "")}
    device, level = levels[line["variant"]]
    return {
        "variant": line["variant"],
        "filter": "mri_nlm",
        "parameters": {
            "dimensions": dimensions.lower(),
            "patch_radius": patch,
            "search_radius": search,
        },
        "channels": int(components),
        "shape": _shape(_PHANTOM if line["size"] == "phantom" else line["size"]),
        "device": device,
        "level": level,
    }
