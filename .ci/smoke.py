"""Smoke test of an installation: the first things a user does, in a minute.

    python .ci/smoke.py              run it with the Python of the environment
    python .ci/smoke.py --oldest     print pip constraints: the oldest versions of pyproject.toml

It applies a filter, saves in every format and reads it again, calls the library, runs a batch and
opens the window without a screen. It needs only the dependencies of the program.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = ("window", "zarr", "cluster")
"""Optional parts that are installed and tried as well."""


def oldest(project: Path = ROOT / "pyproject.toml") -> list[str]:
    """Return a pip constraint for each dependency: the lower end of its range.

    The newest patch of ``>=2.1`` is taken, ``==2.1.*``, of ``>=2.1.3`` that version.
    """
    from pip._vendor.packaging.requirements import Requirement

    content = tomllib.loads(project.read_text(encoding="utf-8"))["project"]
    optional = content["optional-dependencies"]
    constraints = []
    for text in [*content["dependencies"], *(each for name in EXTRAS for each in optional[name])]:
        wanted = Requirement(text)
        (lower,) = (each.version for each in wanted.specifier if each.operator == ">=")
        exact = lower if lower.count(".") >= 2 else f"{lower}.*"
        marker = f"; {wanted.marker}" if wanted.marker else ""
        constraints.append(f"{wanted.name}=={exact}{marker}")
    return constraints


def first_picture(folder: Path) -> None:
    """Apply filters on the command line, to a picture and to a volume."""
    from kernelscope.cli.main import main
    from kernelscope.files import read_image

    for arguments in (
        ["info"],
        ["apply", "median", str(ROOT / "resources/camera.bmp"), str(folder / "out.png")],
        ["phantom", str(folder / "head.nii.gz"), "--size", "16"],
        ["apply", "median", str(folder / "head.nii.gz"), str(folder / "out.nii.gz")],
    ):
        assert main([*arguments, "--device", "cpu"] if arguments[0] == "apply" else arguments) == 0
    assert read_image(folder / "out.png").pixels.shape == (512, 512)


def every_format(folder: Path) -> None:
    """Write and read noise, which does not compress, in each format of pictures and volumes."""
    import numpy as np

    from kernelscope.files import WRITABLE, read_image, write_image
    from kernelscope.files.volumes import WRITABLE_VOLUMES, read_volume, write_volume
    from kernelscope.images.image import Image
    from kernelscope.images.volume import Volume

    random = np.random.default_rng(0)
    for suffix in (each for format in WRITABLE for each in format.suffixes):
        for dtype in (np.uint8, np.uint16):
            for channels in (1, 2, 3, 4):
                noise = random.integers(0, np.iinfo(dtype).max, (300, 511, channels), dtype)
                image = Image(noise[..., 0] if channels == 1 else noise)
                path = write_image(image, folder / f"noise{suffix}", lossy=True)
                read = read_image(path)
                assert read.pixels.shape[:2] == noise.shape[:2], path
                if suffix in (".png", ".tif", ".tiff"):
                    np.testing.assert_array_equal(read.planes, noise)
    for suffix in (each for format in WRITABLE_VOLUMES for each in format.suffixes):
        voxels = random.integers(0, 255, (5, 20, 30), np.uint16)
        path = write_volume(Volume(voxels), folder / f"volume{suffix}", lossy=True)
        assert read_volume(path).voxels.shape == voxels.shape, path


def library(folder: Path) -> None:
    """Call filters as functions."""
    import numpy as np

    import kernelscope as ks

    image = np.random.default_rng(0).integers(0, 255, (64, 65), np.uint8)
    assert ks.median(image, size=3).shape == image.shape
    mean = ks.mean(image, size=3, border="valid")
    assert abs(int(mean[0, 0]) - image[:3, :3].mean()) <= 0.5
    assert ks.nlm(image).dtype == np.uint8


def batch(folder: Path) -> None:
    """Run a recipe on several files, read by several threads."""
    from kernelscope.cli.main import main

    recipe, source = folder / "steps.json", str(ROOT / "resources/camera.bmp")
    steps = ["apply", "median", source, str(folder / "one.png"), "--save-recipe", str(recipe)]
    assert main(steps) == 0
    inputs = [source, str(ROOT / "resources/coffee.png")]
    assert main(["batch", str(recipe), *inputs, "--out", str(folder / "results")]) == 0
    written = {each.name for each in (folder / "results").iterdir()}
    assert {"camera.bmp", "coffee.png"} <= written, written


def window(folder: Path) -> None:
    """Open the window in a process of its own, which ends as the program ends."""
    picture = folder / "window.png"
    command = [sys.executable, __file__, "--window", str(picture)]
    subprocess.run(command, check=True, timeout=180)
    assert picture.exists(), "the window showed no result"


def show_window(picture: Path) -> int:
    """Show the window until the first result is there; save how it looks."""
    from PySide6.QtCore import QTimer

    from kernelscope.gui import application
    from kernelscope.gui.model.freshness import Freshness
    from kernelscope.gui.window import main_window

    class Window(main_window.MainWindow):
        def look(self) -> None:
            if self.session.freshness is Freshness.EXACT:
                self.grab().save(str(picture))
                self.close()
            else:
                QTimer.singleShot(50, self.look)

        def open_first(self, path: Path | None, *more: Path) -> None:
            super().open_first(path, *more)
            QTimer.singleShot(50, self.look)
            QTimer.singleShot(120_000, self.close)

    application.MainWindow = Window  # type: ignore[attr-defined]
    return application.run(None)


def main() -> int:
    """Run every part, each in a new folder, with settings and caches of its own."""
    if "--oldest" in sys.argv:
        print("\n".join(oldest()))
        return 0
    if "--window" in sys.argv:
        return show_window(Path(sys.argv[-1]))
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    with tempfile.TemporaryDirectory() as name:
        for variable in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"):
            os.environ[variable] = str(Path(name) / variable)
        for part in (first_picture, every_format, library, batch, window):
            start = time.perf_counter()
            folder = Path(name) / part.__name__
            folder.mkdir()
            part(folder)
            print(
                f"smoke: {part.__name__} passed in {time.perf_counter() - start:.1f} s", flush=True
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
