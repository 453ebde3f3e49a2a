"""Makes the sample pictures and the icon's PNG from their sources.

The two photographs come with scikit-image (see README.md beside this file); the noise is
made here and is the same at every run: ``python resources/make_samples.py``.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import skimage.data
from PIL import Image

FOLDER = Path(__file__).parent
SEED = 1
SALT_AND_PEPPER = 0.08
"""Share of the pixels that turn black or white."""
SIGMA = 20.0
"""Standard deviation of the Gaussian noise, in levels of 255."""
ICON_SIZE = 256


def main() -> None:
    camera = skimage.data.camera()
    save(camera, "camera.bmp")
    save(salt_and_pepper(camera), "camera-salt-pepper.png")
    save(gaussian(camera), "camera-gaussian.png")
    save(skimage.data.coffee(), "coffee.png")
    render_icon()


def salt_and_pepper(clean: np.ndarray) -> np.ndarray:
    """Turn a share of the pixels black, and as many white."""
    dice = np.random.default_rng(SEED).random(clean.shape)
    noisy = clean.copy()
    noisy[dice < SALT_AND_PEPPER / 2] = 0
    noisy[dice > 1 - SALT_AND_PEPPER / 2] = 255
    return noisy


def gaussian(clean: np.ndarray) -> np.ndarray:
    """Add white Gaussian noise, clipped to the range of the type."""
    noise = np.random.default_rng(SEED).normal(0, SIGMA, clean.shape)
    return np.rint(np.clip(clean + noise, 0, 255)).astype(np.uint8)


def save(pixels: np.ndarray, name: str) -> None:
    Image.fromarray(pixels).save(FOLDER / name, optimize=True)


def render_icon() -> None:
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from PySide6.QtGui import QGuiApplication, QImage, QPainter
    from PySide6.QtSvg import QSvgRenderer

    application = QGuiApplication([])
    image = QImage(ICON_SIZE, ICON_SIZE, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(0)
    painter = QPainter(image)
    QSvgRenderer(str(FOLDER / "icon.svg")).render(painter)
    painter.end()
    image.save(str(FOLDER / "icon.png"))
    application.quit()


if __name__ == "__main__":
    main()
