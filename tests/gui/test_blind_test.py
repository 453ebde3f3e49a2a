"""The blind test: its arithmetic, and its dialog."""

from __future__ import annotations

from math import comb

import pytest
from PySide6.QtCore import QPointF, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from kernelscope.gui.tools.picture_pair import BlindDialog, BlindTest, two_sided
from kernelscope.gui.viewer.rendering import place

# --- arithmetic ---


def _answered(picks: list[bool], seed: int = 1) -> BlindTest:
    """Return a test in which the first picture is chosen where `picks` says so."""
    test = BlindTest(rounds=len(picks), seed=seed)
    for first in picks:
        test.choose(left=test.first_is_left == first)
    return test


def test_p_values_are_sums_of_binomial_probabilities() -> None:
    for count in range(12):
        far = abs(count - 5.5)
        total = sum(comb(11, k) for k in range(12) if abs(k - 5.5) >= far)
        assert two_sided(count, 11) == pytest.approx(total / 2**11)


def test_choices_count_whatever_the_order() -> None:
    test = _answered([True, True, False, True, True, True, True, True])
    assert len(set(test.order)) == 2
    assert (test.chosen_first, test.done, test.over) == (7, 8, True)


def test_the_order_is_drawn_anew_without_a_seed() -> None:
    assert len({tuple(BlindTest(rounds=20).order) for _ in range(5)}) == 5


def test_conclusions_name_the_winner_and_the_doubt() -> None:
    assert _answered([True] * 8).conclude("A", "B") == (
        "A was chosen in 8 of 8 rounds: p = 0.008, this is unlikely to be chance."
    )
    assert _answered([False] * 6 + [True] * 2).conclude("A", "B") == (
        "B was chosen in 6 of 8 rounds: p = 0.289, this may be chance."
    )
    assert "no difference was seen" in _answered([True, False] * 4).conclude("A", "B")


# --- windows ---


def _plain(colour: str, width: int = 40, height: int = 30) -> QImage:
    image = QImage(width, height, QImage.Format.Format_RGB32)
    image.fill(QColor(colour))
    return image


def test_the_dialog_hides_names_until_the_end(qtbot: QtBot) -> None:
    dialog = BlindDialog((_plain("red"), _plain("blue")), ("Size 3", "Size 5"), seed=3)
    qtbot.addWidget(dialog)
    dialog.show()
    for round_ in range(8):
        assert f"Round {round_ + 1} of 8" in dialog.question.text()
        assert "Size" not in dialog.question.text()
        red_is_left = dialog.sides[0].image.pixelColor(0, 0).name() == "#ff0000"
        assert red_is_left == dialog.test.first_is_left
        # Always the red one: by keys and by buttons.
        if round_ % 2:
            QTest.keyClick(dialog, Qt.Key.Key_1 if red_is_left else Qt.Key.Key_2)
        else:
            qtbot.mouseClick(dialog.buttons[0 if red_is_left else 1], Qt.MouseButton.LeftButton)
    assert dialog.question.text().startswith("Size 3 was chosen in 8 of 8 rounds: p = 0.008")
    assert not any(button.isEnabled() for button in dialog.buttons)
    QTest.keyClick(dialog, Qt.Key.Key_1)
    assert dialog.test.done == 8


def test_pictures_are_enlarged_by_whole_numbers(qtbot: QtBot) -> None:
    picture = _plain("red")
    room = place(picture, QRectF(0, 0, 130, 130))
    assert (room.width(), room.height()) == (120, 90)
    assert room.center() == QPointF(65, 65)
    assert place(picture, QRectF(0, 0, 20, 90)).size() == QSizeF(20, 15), "or reduced to fit"
