"""Files that are too large for the window: the error names the command that filters them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tifffile
from PySide6.QtWidgets import QLabel
from pytestqt.qtbot import QtBot

from kernelscope.gui.widgets.messages import ErrorDialog
from kernelscope.gui.window.main_window import MainWindow
from tests.gui.helpers import dialog


def test_the_command_for_a_large_file(qtbot: QtBot, window: MainWindow, tmp_path: Path) -> None:
    with (tmp_path / "huge.tif").open("wb") as handle:
        file = tifffile.FileHandle(handle, name="huge.tif")
        with tifffile.TiffWriter(file, bigtiff=True) as writer:
            writer.write(None, shape=(40, 9000, 9000), dtype=np.uint8, photometric="minisblack")
    with tifffile.TiffWriter(tmp_path / "packed.tif") as writer:  # a small file of many pixels
        strips = (b"" for _ in range(1))
        writer.write(
            strips, shape=(20000, 20000), dtype=np.uint8, compression="zlib", rowsperstrip=20000
        )
    (tmp_path / "scan.zarr").mkdir()
    (tmp_path / "small.tif").write_bytes(b"II*\0")
    for name in ("huge.tif", "packed.tif", "scan.zarr", "small.tif"):
        window.file_dialogs.open(tmp_path / name)
        box = dialog(qtbot, window, ErrorDialog)
        shown = " ".join(label.text() for label in box.findChildren(QLabel))
        command = f"kernelscope apply median {name} OUTPUT.tif --memory 2G"
        assert (command in shown) == (name != "small.tif"), shown
        box.reject()
