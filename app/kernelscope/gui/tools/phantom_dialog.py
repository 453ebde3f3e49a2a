"""Asks for a head phantom, so that volumes can be tried without data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QDialogButtonBox, QLabel, QWidget

from kernelscope.gui.widgets.form import Form, Listed, Real, Tick, Whole
from kernelscope.gui.widgets.parts import dressed, in_column
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

_SIDES = {"width": 112, "height": 128, "depth": 96}
"""Large enough to see something, small enough for any CPU."""

_MOST = 1024
_NOISES = {
    ScannerNoise.RICIAN: ("Rician", "magnitude images"),
    ScannerNoise.VARYING_RICIAN: ("varying Rician", "parallel imaging"),
    ScannerNoise.GAUSSIAN: ("Gaussian", "real images"),
    ScannerNoise.UNIFORM: ("uniform", "no scanner"),
}
"""Names of the kinds of noise, and their origin."""


_OPTIONS = (
    *(
        Whole(name, name.capitalize(), side, low=8, high=_MOST, unit="voxels")
        for name, side in _SIDES.items()
    ),
    Tick("hasVoxel", "&Voxels in mm", help="Off: voxels of 1 mm, and the head fills the volume"),
    *(
        Real(
            f"{name}InMillimetres",
            f"{name.capitalize()} of a voxel",
            1,
            low=0.1,
            high=20,
            unit="mm",
            step=0.1,
        )
        for name in _SIDES
    ),
    *(Tick(each.value, each.value, each is Contrast.T1W, beside="Weightings") for each in Contrast),
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
        self._form = Form("phantomOptions", _OPTIONS, self)
        self._form.changed.connect(self._follow)
        self._buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel, self)
        self._make = self._buttons.addButton("Make", QDialogButtonBox.ButtonRole.AcceptRole)
        dressed(self._make, "makePhantom", "Make the phantom")
        cancel = self._buttons.button(QDialogButtonBox.StandardButton.Cancel)
        dressed(cancel, "cancelPhantom", "Cancel")
        self._buttons.accepted.connect(self._order)
        self._buttons.rejected.connect(self.reject)
        in_column(about, self._form, self._buttons, of=self)
        self._follow()

    @property
    def order(self) -> PhantomOrder:
        value = self._form.values
        width, height, depth = (value[name] for name in _SIDES)
        across, down, deep = (value[f"{name}InMillimetres"] for name in _SIDES)
        return PhantomOrder(
            (depth, height, width),
            tuple(each for each in Contrast if value[each.value]),
            *(value["noiseKind"], value["noiseSigma"], value["noiseSeed"]),
            (deep, down, across) if value["hasVoxel"] else None,
        )

    def _follow(self) -> None:
        for name in _SIDES:
            self._form.show_row(f"{name}InMillimetres", self._form.values["hasVoxel"])
        self._make.setEnabled(bool(self.order.contrasts) and self._form.problem is None)

    def _order(self) -> None:
        self.ordered.emit(self.order)
        self.accept()
