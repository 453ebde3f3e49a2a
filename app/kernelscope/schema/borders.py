"""Borders: the treatment of mask cells that fall outside the image."""

from __future__ import annotations

from enum import StrEnum


class Border(StrEnum):
    """How a filter treats the cells of its mask that fall outside the image."""

    REFLECT = "reflect"
    MIRROR = "mirror"
    NEAREST = "nearest"
    CONSTANT = "constant"
    WRAP = "wrap"
    VALID = "valid"
    REDUCE = "reduce"
    KEEP = "keep"

    @property
    def code(self) -> int:
        """The number that stands for this border inside compiled kernels.

        Kernels do not know `KEEP`. They compute the pixels at the rim as for `NEAREST`, and the
        backend then replaces them by those of the source.
        """
        return _CODES[self]

    @property
    def help(self) -> str:
        """One line for tooltips and ``--help``."""
        return _BORDER_HELP[self]


_BORDER_HELP = {
    Border.REFLECT: "mirrored, the edge pixel twice (d c b a | a b c d | d c b a)",
    Border.MIRROR: "mirrored about the edge pixel (d c b | a b c d | c b a)",
    Border.NEAREST: "the edge pixel goes on (a a a | a b c d | d d d)",
    Border.CONSTANT: "zeros outside (0 0 0 | a b c d | 0 0 0)",
    Border.WRAP: "the image repeats (b c d | a b c d | a b c)",
    Border.VALID: "only where the mask fits: the result is smaller",
    Border.REDUCE: "only the cells inside the image count; the divisor follows",
    Border.KEEP: "pixels whose mask does not fit stay as they are",
}

_CODES = {each: list(Border).index(each) for each in Border} | {
    Border.KEEP: list(Border).index(Border.NEAREST)
}
