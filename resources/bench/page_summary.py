"""The page in a few sentences, and the errors of its first version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from page_claims import amount, between
from page_files import experiment, reports

from kernelscope.bench.recorded import card_of
from kernelscope.bench.statistics import (
    Ratio,
    short,
    summarise,
)

_FIRST_COMMITS = ("0e04ab6", "cff5683", "66fb893", "bc11e6e")
"""Commit of the measurements in the page's first version."""


def before() -> str:
    """Return the errors in this page's first figures, with the present values."""
    text = (
        "The first figures of this page (kernels of 21 November 2026) were wrong in three ways. "
        "*Levels differed by more than memory*: up to *texture*, a kernel tested the border and "
        "multiplied 64-bit numbers at every read, inside the picture too, about 40 instructions "
        "where a textbook kernel has 3; *shared* paid that once a tile. The page took this "
        "arithmetic for memory: shared memory was said to be 4.59× as fast as global memory for "
        "a 9×9 mask, constant memory 0.978× (“no longer”), and for non-local means, where *global* "
        "made two passes and *shared* one, 46.1×. *serial was slow*: it tested borders as well, "
        "and took 1.9 to 5.5 times as long as the same loops of linear filters in C at -O2, so "
        "that every gain over it was as much too large. *Charts mixed quantities*: speed-ups of "
        "our kernels stood beside those of the authors' whole runs, and six of nine PSNRs were "
        "those of smaller pictures."
    )
    levels, nlm = experiment("f-levels"), experiment("n-nlm")
    if any(commit in levels.machine.get("Kernelscope", "") for commit in _FIRST_COMMITS):
        return f"{text} The figures below are still those."
    patches, whole = "Non-local means, patch size 7", "256×256"
    now = (
        between(levels, "GPU global", "GPU shared"),
        between(levels, "GPU global", "GPU constant"),
        between(nlm, "GPU global", "GPU shared", label=patches, size=whole),
    )
    if None in now:
        return text
    shared, constant, means = (amount(each) for each in now)
    return (
        f"{text} Measured again, shared memory is {shared} as fast as global memory for that mask, "
        f"constant memory {constant}, and for non-local means shared memory is {means} as fast."
    )


def in_short() -> str:
    """Return the results of the experiments as a list; without those that were not measured."""

    def shown(value: Any) -> str:
        return amount(value) if isinstance(value, Ratio) else short(value)

    return "\n".join(
        "- " + text.format(*map(shown, values))
        for text, values in (*_of_pictures(), *_of_patches())
        if None not in values
    )


Facts = tuple[tuple[str, Sequence[Ratio | float | None]], ...]
"""Sentences, and the numbers in them; None for one that was not measured."""


def _machines(name: str) -> tuple[str, str]:
    """Return ``the 2 cores of an AMD EPYC`` and ``H100`` of an experiment."""
    processor, _, cores = reports(f"cpu-{name}").machine.get("CPU", "CPU, ?").rpartition(", ")
    card = reports(f"gpu-{name}").machine.get("GPU", "GPU").rpartition(" × ")[2]
    return f"the {cores} of an {processor}", card_of(card.partition(",")[0])


def _of_pictures() -> Facts:
    """Return the facts about masks."""
    levels, tables = experiment("f-levels"), experiment("f-tables")
    mask, large, small = "Custom mask, 9×9", "4096×4096", "128×128"
    cores, card = _machines("f-tables")
    tuned = next((row for row in levels.rows if row.series == "GPU tuned" and row.seconds), None)
    kernel = summarise(tuned.seconds).median / summarise(tuned.waits).median if tuned else None
    return (
        (
            f"The kernel of a 9×9 mask on 4096² pixels of an {card}, beside global memory: "
            "constant memory is {} as fast, textures {}, shared memory {}, the level *tuned* {}.",
            [
                between(levels, "GPU global", f"GPU {name}")
                for name in ("constant", "texture", "shared", "tuned")
            ],
        ),
        (
            "Of such a run at level *tuned* the kernel is {} %: the rest is the picture's way to "
            "the card and back. End to end *tuned* is {} as fast as global memory.",
            [
                100 * kernel if kernel else None,
                between(levels, "GPU global", "GPU tuned", waiting=True),
            ],
        ),
        (
            f"Beside {cores}, a 9×9 mask at level *tuned* of an {card} is "
            "{} as fast end to end on 4096² pixels, and {} on 128².",
            [
                between(tables, "CPU parallel", "GPU tuned", label=mask, size=size, waiting=True)
                for size in (large, small)
            ],
        ),
        (
            f"On {cores}, *parallel* is "
            "{} as fast as *serial*: a speed-up over serial code says little about the GPU.",
            [between(tables, "CPU serial", "CPU parallel", label=mask, size=large)],
        ),
    )


def _of_patches() -> Facts:
    """Return the facts about non-local means of pictures and volumes."""
    nlm, volumes = experiment("n-nlm"), experiment("v-three")
    cores, card = _machines("n-nlm")
    cards = _machines("v-three")[1]
    patches, whole = "Non-local means, patch size 7", "256×256"
    heads = "MRI NLM, dimensions 3d, patch radius 1, search radius 3"
    real = "189×157×130"
    return (
        (
            "Kernels of non-local means over a whole picture of 256² pixels, patches of 7×7, on "
            f"an {card}: "
            "shared memory is {} as fast as global memory, *tuned* another {}, and that {} as "
            f"fast as {cores}.",
            [
                between(nlm, slower, faster, label=patches, size=whole)
                for slower, faster in (
                    ("GPU global", "GPU shared"),
                    ("GPU shared", "GPU tuned"),
                    ("CPU parallel", "GPU tuned"),
                )
            ],
        ),
        (
            f"Kernels for three volumes of 189×157×130 voxels, d = 1, v = 3, on an {cards}: "
            "shared memory is {} as fast as global memory, *tuned* another {}.",
            [
                between(volumes, slower, faster, label=heads, size=real)
                for slower, faster in (("GPU global", "GPU shared"), ("GPU shared", "GPU tuned"))
            ],
        ),
    )
