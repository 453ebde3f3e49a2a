"""The pictures that come with the program."""

from __future__ import annotations

import numpy as np
import PIL.Image
import pytest
import skimage.data

from kernelscope.base.paths import RESOURCES
from kernelscope.files import SAMPLES, read_image
from tests.scripts import load_script


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.path.name)
def test_opens_without_a_notice(sample):
    image = read_image(sample.path)
    assert image.notices == ()
    assert image.pixels.dtype == np.uint8


def test_they_are_what_the_issue_asks_for():
    names = [sample.path.name for sample in SAMPLES]
    assert names[0] == "camera-salt-pepper.png"
    assert {path.suffix for path in (sample.path for sample in SAMPLES)} >= {".bmp", ".png"}
    assert len({sample.caption for sample in SAMPLES}) == len(SAMPLES)
    assert sum(path.stat().st_size for path in RESOURCES.iterdir() if path.is_file()) < 2e6


@pytest.mark.slow
def test_the_script_makes_them(tmp_path, monkeypatch):
    script = load_script(RESOURCES / "make_samples.py")
    monkeypatch.setattr(script, "FOLDER", tmp_path)
    monkeypatch.setattr(script, "render_icon", lambda: None)  # Needs a Qt of its own.
    script.main()
    for sample in SAMPLES:
        made = read_image(tmp_path / sample.path.name)
        np.testing.assert_array_equal(made.pixels, read_image(sample.path).pixels)


def test_noise_is_what_its_caption_says():
    clean = skimage.data.camera().astype(int)
    pepper = read_image(RESOURCES / "camera-salt-pepper.png").pixels
    changed = pepper[pepper != clean]
    assert set(np.unique(changed)) == {0, 255}
    assert 0.07 < changed.size / clean.size < 0.09
    middle = (clean > 80) & (clean < 175)
    noise = (read_image(RESOURCES / "camera-gaussian.png").pixels - clean)[middle]
    assert abs(noise.mean()) < 0.5
    assert abs(noise.std() - 20) < 0.5


def test_icon():
    with PIL.Image.open(RESOURCES / "icon.png") as icon:
        assert (icon.mode, icon.size) == ("RGBA", (256, 256))
        assert icon.getchannel("A").getpixel((0, 0)) == 0
