"""Text that is safe to show, and lists in words."""

from __future__ import annotations

import numpy as np
import pytest

from kernelscope.base.errors import LossyFormat
from kernelscope.base.text import enumerated, one_line, printable
from kernelscope.files import check_write
from tests.pairs import together


@together(
    ("words", "text"),
    [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")],
)
def test_lists(words: list[str], text: str) -> None:
    assert enumerated(words) == text
    assert enumerated(words, "or") == text.replace("and", "or")


def test_what_a_format_loses_is_listed() -> None:
    with pytest.raises(LossyFormat, match="cannot keep float samples, transparency and colour"):
        check_write("a.pgm", (4, 5, 4), np.dtype(np.float32))


def test_control_characters_are_shown() -> None:
    assert printable("a\x1b[2J\nb") == "a\\x1b[2J\nb"
    assert one_line("a\nb") == "a\\nb"


def test_spaces_of_any_width_are_no_control_characters() -> None:
    assert printable("1\u202f000\u00a0px \u3000.png") == "1\u202f000\u00a0px \u3000.png"
    assert printable("\t\u2028\x85\u202e") == "\\t\\u2028\\x85\\u202e"
