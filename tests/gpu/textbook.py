"""Textbook kernels of the stencil filters beside the program's levels.

A family of kernels adds its cases by a function that yields `Case` objects, see `CASES`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope.filters.laplace import MASKS
from kernelscope.filters.shared.correlation import binomial
from kernelscope.schema.borders import Border
from tests.gpu.contenders import (
    Card,
    Contender,
    Job,
    Pictures,
    job_of,
    level_of_program,
    plan_of,
    task_of,
)

BLOCK = (32, 8)
SQUARE = 16
"""Results of a block in x and y, of the kernels with square blocks."""

EDGES = "shared, edge threads"
CELLS = "shared, cell threads"
"""Other ways to read a tile than in turns: threads at a block's edges read the cells beyond (report
no. 5, 3.3), or there is a thread for each cell (Korčuška 2013, 5.2)."""

BORDER = Border.REFLECT


@functools.cache
def source_text() -> str:
    return (Path(__file__).parent / "textbook.cu").read_text(encoding="utf-8")


@dataclass(frozen=True)
class Case:
    """A filter with its parameters, and the textbook's kernel for each level.

    Attributes
    ----------
    kernels : mapping
        Name of the textbook's kernel by level of the program, or by level and way (`EDGES`).
    macros : mapping
        For the textbook's kernels.
    weights : ndarray, optional
        The mask.
    """

    name: str
    filter_id: str
    parameters: Mapping[str, Any]
    kernels: Mapping[str, str]
    macros: Mapping[str, str] = field(default_factory=dict)
    weights: NDArray[Any] | None = None

    @property
    def rim(self) -> int:
        """Pixels at each side that the textbook's kernels leave out."""
        return int(self.macros["SIZE"]) // 2

    def jobs(self, architecture: str, shape: tuple[int, ...]) -> list[Job]:
        """Return the kernels to compile."""
        dtype = np.dtype(np.uint8)
        own = [
            plan_of(
                task_of(self.filter_id, shape, dtype, self.parameters, BORDER, level_of(name)),
                self.filter_id,
            )
            for name in self.kernels
        ]
        plain = ("textbook", source_text(), architecture, tuple(sorted(self.macros.items())))
        return [plain, *(job_of(self.filter_id, launch, architecture) for launch in own)]

    def pairs(self, pictures: Pictures) -> dict[str, tuple[Contender, Contender]]:
        """Return the program's kernel and the textbook's for each of `kernels`."""
        own = {
            level: level_of_program(pictures, self.filter_id, self.parameters, BORDER, level)
            for level in map(level_of, self.kernels)
        }
        return {name: (own[level_of(name)], self._plain(pictures, name)) for name in self.kernels}

    def _plain(self, pictures: Pictures, level: str) -> Contender:
        card = pictures.card
        module = card.module("textbook", source_text(), self.macros)
        name = self.kernels[level]
        function = module.get_function(name)
        height, width, _ = pictures.source.shape
        grid, block = (-(-width // BLOCK[0]), -(-height // BLOCK[1])), BLOCK
        if level == "single-block":
            grid, block = (1, 1), (32, 32)
        if level in (EDGES, CELLS):
            grid = -(-width // SQUARE), -(-height // SQUARE)
            side = SQUARE if level == EDGES else SQUARE + 2 * self.rim
            block = side, side
        tables = []
        if self.weights is not None:
            weights = self.weights.astype(np.int32)
            card.set_constant(module, "mask", weights)
            if name == "mask_global":
                tables.append(card.upload(weights))
        if name.endswith("texture"):
            firsts = [texture.handle for texture in pictures.textures(Border.NEAREST)]
        else:
            firsts = [int(buffer) for buffer in pictures.sources]
        function.prepare("PPii" + "P" * len(tables))

        def start(copy: int) -> None:
            function.prepared_call(
                grid,
                (*block, 1),
                firsts[copy],
                int(pictures.results[copy]),
                width,
                height,
                *map(int, tables),
            )

        return Contender(f"{level}, textbook", start)


_MASK_LEVELS = {level: f"mask_{level}" for level in ("global", "constant", "shared", "texture")}
_MASK_LEVELS[CELLS] = "mask_cell_threads"


def level_of(name: str) -> str:
    """Return the program's level that one of `Case.kernels` is held against."""
    return name.split(",")[0]


def _named(family: str, *levels: str) -> dict[str, str]:
    return {level: f"{family}_{level}" for level in levels}


def stencils() -> Sequence[Case]:
    """Return the cases of the filters that look at a square around each pixel."""
    cases = []
    for size in (3, 9):
        kernels = {
            "single-block": "mean_global",
            **_named("mean", "global", "shared", "texture"),
            EDGES: "mean_edge_threads",
        }
        cases.append(Case(f"mean {size}", "mean", {"size": size}, kernels, {"SIZE": str(size)}))
    for size in (3, 9):
        weights = np.random.default_rng(size).integers(-2, 10, (size, size))
        parameters = {"mask": weights.tolist(), "divisor": "count", "negative": "clip"}
        macros = {"SIZE": str(size)}
        cases.append(Case(f"mask {size}", "mask", parameters, _MASK_LEVELS, macros, weights))
    weights = np.outer(binomial(9), binomial(9))
    macros = {"SIZE": "9", "DIVISOR": str(int(weights.sum()))}
    cases.append(
        Case("weighted mean 9", "weighted_mean", {"size": 9}, _MASK_LEVELS, macros, weights)
    )
    for size in (3, 9):
        kernels = _named("median", "global", "shared", "texture", "selection")
        kernels[CELLS] = "median_cell_threads"
        cases.append(Case(f"median {size}", "median", {"size": size}, kernels, {"SIZE": str(size)}))
    kernels = _named("sobel", "global", "shared", "texture")
    cases.append(Case("Sobel", "sobel", {"form": "sum"}, kernels, {"SIZE": "3"}))
    macros = {"SIZE": "5", "DIVISOR": "1"}
    parameters = {"form": "5x5", "negative": "clip"}
    weights = np.array(MASKS["5x5"])
    cases.append(Case("Laplace 5x5", "laplace", parameters, _MASK_LEVELS, macros, weights))
    return cases


CASES: tuple[Callable[[], Sequence[Case]], ...] = (stencils,)
"""Every family's cases."""


def all_cases() -> list[Case]:
    return [case for family in CASES for case in family()]


def picture(side: int) -> NDArray[np.uint8]:
    """Return noise, shape (side, side, 1)."""
    return np.random.default_rng(side).integers(0, 256, (side, side, 1), np.uint8)


def differing(card: Card, case: Case, side: int) -> dict[str, int]:
    """Return how many samples of the interior the two kernels of each level differ in."""
    pictures = Pictures(card, picture(side), (side, side, 1))
    inner = slice(case.rim, -case.rim)
    found = {}
    try:
        for level, pair in case.pairs(pictures).items():
            results = []
            for contender in pair:
                contender.launch(0)
                card.cuda.Context.synchronize()
                results.append(pictures.result()[inner, inner])
            found[level] = int((results[0] != results[1]).sum())
    finally:
        pictures.free()
    return found
