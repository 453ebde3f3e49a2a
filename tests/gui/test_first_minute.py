"""The first start: a noisy sample, its truth, a result and a hint, without a click."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pytestqt.qtbot import QtBot

from kernelscope.files import SAMPLES, read_image
from kernelscope.files.samples import truth_of
from kernelscope.gui.model.freshness import Freshness
from kernelscope.gui.model.history import ReferenceOrigin
from kernelscope.gui.window.main_window import MainWindow
from kernelscope.images.image import Image
from tests.gui.helpers import Opener, load, settle, shown


def test_samples_with_noise_know_their_truth() -> None:
    known = [each for each in SAMPLES if each.truth is not None]
    assert len(known) == 2
    for sample in known:
        assert sample.truth is not None
        clean, noisy = read_image(sample.truth).pixels, read_image(sample.path).pixels
        assert clean.shape == noisy.shape
        # The same picture: most of it is close, and not all of it.
        assert np.median(np.abs(clean.astype(int) - noisy)) <= 20
        assert (clean != noisy).any()
    assert truth_of(Path("camera-gaussian.png")) is None
    assert truth_of(None) is None


def _opened(qtbot: QtBot, window: MainWindow, path: Path | None) -> None:
    name = (path or SAMPLES[0].path).name
    window.open_first(path)
    qtbot.waitUntil(lambda: shown(window) == name)


def test_the_first_start_shows_a_result_and_a_hint(qtbot: QtBot, open_window: Opener) -> None:
    window = open_window(live=True)
    _opened(qtbot, window, None)
    assert "the output follows" in window.statusBar().currentMessage()
    qtbot.waitUntil(lambda: window.session.freshness is Freshness.EXACT)
    qtbot.waitUntil(lambda: window.session.subject.reference is not None)
    reference = window.session.subject.reference
    assert reference is not None
    assert reference.origin is ReferenceOrigin.TRUTH
    assert isinstance(reference.image, Image)
    assert (reference.image.pixels == read_image(SAMPLES[2].path).pixels).all()


def test_a_file_of_ones_own_gets_neither(qtbot: QtBot, window: MainWindow, picture: Path) -> None:
    _opened(qtbot, window, picture)
    assert "the output follows" not in window.statusBar().currentMessage()
    assert window.session.subject.reference is None


def test_the_truth_goes_with_its_sample(qtbot: QtBot, window: MainWindow, picture: Path) -> None:
    _opened(qtbot, window, None)
    qtbot.waitUntil(lambda: window.session.subject.reference is not None)
    load(qtbot, window, picture)
    assert window.session.subject.reference is None


def test_a_reference_that_was_chosen_stays(qtbot: QtBot, window: MainWindow) -> None:
    """The truth comes a moment after the picture: a choice in between wins."""
    window.open_first(None)
    qtbot.waitUntil(lambda: window.session.subject.source is not None)
    image = window.session.subject.source
    assert isinstance(image, Image)
    window.session.subject.set_reference(image)
    settle(qtbot, window)
    assert window.session.subject.reference is not None
    assert window.session.subject.reference.origin is ReferenceOrigin.CHOSEN
