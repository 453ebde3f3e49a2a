"""Asks for a head phantom, so that volumes can be tried without data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QCheckBox, QDialogButtonBox, QHBoxLayout, QLabel, QWidget

from kernelscope.gui.widgets.controls import NumberBox, WholeBox
from kernelscope.gui.widgets.form import Form, Listed, Real, Whole
from kernelscope.gui.widgets.parts import dressed, in_column, in_row
from kernelscope.gui.widgets.tool_window import ToolWindow
from kernelscope.images.phantom import (
    BRIGHTEST,
    Contrast,
    ScannerNoise,
    Shape,
    Voxel,
    add_noise,
    affine,
    head,
)
from kernelscope.images.volume import Volume

_FIRST_SIZE = (112, 128, 96)
"""Width, height and depth: large enough to see something, small enough for any CPU."""

_MOST = 1024
_NOISES = {
    ScannerNoise.RICIAN: ("Rician", "magnitude images"),
    ScannerNoise.VARYING_RICIAN: ("varying Rician", "parallel imaging"),
    ScannerNoise.GAUSSIAN: ("Gaussian", "real images"),
    ScannerNoise.UNIFORM: ("uniform", "no scanner"),
}
"""Names of the kinds of noise, and their origin."""


_OPTIONS = (
    Listed(
        "noiseKind",
        "&Noise",
        ScannerNoise.RICIAN,
        "Kind of noise",
        entries=tuple((f"{n[0].upper()}{n[1:]} ({by})", k) for k, (n, by) in _NOISES.items()),
    ),
    Real(
        "noiseSigma",
        "&Sigma",
        9.0,
        "Sigma of the noise",
        high=100,
        unit="% of the brightest tissue",
        decimals=1,
    ),
    Whole("noiseSeed", "S&eed", 0, "The same number gives the same noise", high=10**6),
)


@dataclass(frozen=True)
class PhantomOrder:
    shape: Shape  # depth, height and width
    contrasts: tuple[Contrast, ...]
    noise: ScannerNoise
    sigma: float  # in percent of the brightest tissue
    seed: int = 0
    voxel: Voxel | None = None
    """Size along z, y and x in millimetres; None: the head fills the volume."""

    def make(self) -> tuple[list[Volume], list[Volume]]:
        """Return the volumes with noise, and those without, of each contrast; takes a while."""
        phantom = head(self.shape, self.contrasts, voxel=self.voxel)
        noisy, truth = [], []
        for number, (contrast, signal) in enumerate(phantom.truth.items()):
            seed = self.seed + number  # each scan has noise of its own
            voxels = add_noise(signal, self.noise, self.sigma / 100 * BRIGHTEST, seed).voxels
            title = f"Phantom {contrast}, {self.sigma:g} % {_NOISES[self.noise][0]} noise"
            place: dict[str, Any] = {"affine": affine(self.voxel)}
            place["spacing"] = self.voxel or (1.0, 1.0, 1.0)
            noisy.append(Volume.from_array(voxels, title, **place))
            truth.append(Volume.from_array(signal, f"Phantom {contrast}", **place))
        return noisy, truth


class PhantomDialog(ToolWindow):
    ordered = Signal(object)  # `PhantomOrder`: The user wants this one

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__("phantomDialog", "New phantom", parent, help_page="volumes#phantoms")
        about = QLabel("A head phantom with scanner noise, and its noise-free original.", self)
        self._sides = [
            self._side(name, value)
            for name, value in zip(("width", "height", "depth"), _FIRST_SIZE, strict=True)
        ]
        self._has_voxel = dressed(
            QCheckBox("Voxels in mm", self),
            "hasVoxel",
            "Voxels have a size",
            tip="Off: voxels of 1 mm, and the head fills the volume",
        )
        self._voxel = [self._side_in_mm(name) for name in ("width", "height", "depth")]
        for side in self._voxel:
            side.setEnabled(False)
            self._has_voxel.toggled.connect(side.setEnabled)
        contrasts = self._make_contrasts()
        self._form = Form("phantomNoise", _OPTIONS, self)
        self._form.rows.insertRow(0, "Size in voxels", _times(self._sides))
        self._form.rows.insertRow(1, self._has_voxel, _times(self._voxel))
        self._form.rows.insertRow(2, "Weightings", contrasts)
        self._buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel, self)
        self._make = self._buttons.addButton("Make", QDialogButtonBox.ButtonRole.AcceptRole)
        dressed(self._make, "makePhantom", "Make the phantom")
        cancel = self._buttons.button(QDialogButtonBox.StandardButton.Cancel)
        dressed(cancel, "cancelPhantom", "Cancel")
        self._buttons.accepted.connect(self._order)
        self._buttons.rejected.connect(self.reject)
        in_column(about, self._form, self._buttons, of=self)

    def _make_contrasts(self) -> QHBoxLayout:
        self._contrasts = {contrast: QCheckBox(contrast.value, self) for contrast in Contrast}
        for contrast, switch in self._contrasts.items():
            dressed(switch, contrast.value, contrast.value)
            switch.setChecked(contrast is Contrast.T1W)
            switch.toggled.connect(self._check)
        return in_row(*self._contrasts.values(), 1)

    @property
    def order(self) -> PhantomOrder:
        values = self._form.values
        noise, sigma, seed = (values[each] for each in ("noiseKind", "noiseSigma", "noiseSeed"))
        width, height, depth = (box.value() for box in self._sides)
        across, down, deep = (box.value() for box in self._voxel)
        chosen = tuple(contrast for contrast, box in self._contrasts.items() if box.isChecked())
        voxel = (deep, down, across) if self._has_voxel.isChecked() else None
        return PhantomOrder((depth, height, width), chosen, noise, sigma, seed, voxel)

    def _side(self, name: str, value: int) -> WholeBox:
        box = dressed(WholeBox(self), name, f"{name.capitalize()} in voxels", tip=name.capitalize())
        box.setRange(8, _MOST)
        box.setValue(value)
        return box

    def _side_in_mm(self, name: str) -> NumberBox:
        tip = f"{name.capitalize()} of a voxel"
        box = dressed(NumberBox(self), f"{name}InMillimetres", f"{tip} in millimetres", tip=tip)
        box.setRange(0.1, 20)
        box.setSingleStep(0.1)
        box.setValue(1)
        return box

    def _check(self) -> None:
        self._make.setEnabled(bool(self.order.contrasts))

    def _order(self) -> None:
        self.ordered.emit(self.order)
        self.accept()


def _times(boxes: Sequence[QWidget]) -> QHBoxLayout:
    """Return boxes in a row, with × between them."""
    first, *others = boxes
    return in_row((first, 1), *(part for box in others for part in (QLabel("×"), (box, 1))))
