"""Colours of slices and of differences over anatomy, without a window."""

from __future__ import annotations

import numpy as np

from kernelscope.gui.model.slice_drawing import Look

WIDTH = 200


def layer(look: Look, *values: float, gain: int = 1) -> list[list[int]]:
    return look.layer(np.array([values], np.float32), WIDTH, gain)[0].tolist()


def test_differences_over_anatomy_are_blue_and_orange() -> None:
    none, darker, brighter = layer(Look(opacity=1), 0, -60, 60)
    assert none[3] == 0
    assert darker[2] > darker[0]
    assert brighter[0] > brighter[2]
    assert darker[3] == brighter[3] == round(255 * 0.6)


def test_opacity_and_gain_scale_the_layer() -> None:
    (half,) = layer(Look(opacity=0.5), 100)
    assert half[3] == round(255 * 0.5)
    (doubled,) = layer(Look(opacity=1), 25, gain=2)
    assert doubled[3] == round(255 * 0.5)
    (saturated,) = layer(Look(opacity=1), 500)
    assert saturated[3] == 255


def test_differences_below_the_threshold_are_left_out() -> None:
    below, above, negative = layer(Look(threshold=30), 29, 30, -30)
    assert below[3] == 0
    assert above[3] > 0
    assert negative[3] > 0
