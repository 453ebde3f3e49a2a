"""Non-local means beside plain kernels of each memory: ``python -m tests.gpu.textbook_nlm``.

The kernels of ``textbook_nlm.cu`` are those of a good textbook for a memory. A level that
takes longer than they do pays for something other than its memory.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernelscope import filters
from kernelscope.backends.cpu import CpuBackend
from kernelscope.backends.cuda import CudaBackend
from kernelscope.backends.cuda.arguments import Texture
from kernelscope.backends.cuda.compiler import Nvrtc
from kernelscope.engine.options import Device
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.filters.shared.non_local import patch_weights
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema.samples import Kind

SOURCE = Path(__file__).with_suffix(".cu")
ROUNDS = 7
BAR = 1.15
"""How many times as long as the plain kernel a level may take."""


@dataclass(frozen=True)
class Contest:
    """A filter of the program at a level, and the plain kernels of the same memory.

    Attributes
    ----------
    shape : tuple of int
        Of the picture, (height, width), or the volume, (depth, height, width).
    kernels : str
        Prefix of their names in ``textbook_nlm.cu``.
    """

    filter: str
    level: str
    shape: tuple[int, ...]
    kernels: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> str:
        return "×".join(map(str, reversed(self.shape)))


def contests(side: int = 256, volume: tuple[int, int, int] = (130, 157, 189)) -> list[Contest]:
    """Return all contests; `side` is a multiple of 32."""
    mri = {"sigma_from": "given", "sigma": (20.0,)}
    return [
        *(
            Contest(
                "nlm",
                level,
                (side, side),
                f"{search}_{level}",
                {"search": search_in, "weights": "gaussian"},
            )
            for search, search_in in (("window", "window"), ("whole", "image"))
            for level in ("global", "constant", "texture", "shared")
        ),
        *(Contest("mri_nlm", level, volume, f"mri_{level}", mri) for level in ("global", "shared")),
    ]


def noisy(shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Return slow waves with noise: in [0, 1] for a picture, up to 200 for a volume."""
    waves = np.sum([np.sin(axis / 7) for axis in np.indices(shape)], axis=0)
    noise = np.random.default_rng(0).normal(0, 0.1, shape)
    values: NDArray[np.float32] = np.clip(0.5 + 0.1 * waves + noise, 0, 1).astype(np.float32)
    values *= np.float32(200 if len(shape) == 3 else 1)
    return values


class Plain:
    """The plain kernels of a contest, ready to be launched; `close` frees their memory."""

    def __init__(self, backend: CudaBackend, contest: Contest) -> None:
        self._card = backend._open()[0]
        self._contest = contest
        self._card.call(self._prepare)

    def run(self) -> tuple[NDArray[np.float32], float]:
        """Return the result and the seconds that the kernels took."""
        result: tuple[NDArray[np.float32], float] = self._card.call(self._run)
        return result

    def close(self) -> None:
        self._card.call(self._card.free, *self._buffers)
        self._buffers.clear()

    def _prepare(self) -> None:
        cuda, card = self._card.cuda, self._card
        contest = self._contest
        spec = filters.get(contest.filter)
        values = spec.validate(contest.parameters)
        text = SOURCE.read_text(encoding="utf-8")
        cubin = Nvrtc().compile("textbook_nlm", text, card.architecture, {})
        pixels = noisy(contest.shape)
        self._result = np.empty_like(pixels)
        self._buffers: list[Any] = [card.allocate(pixels.nbytes) for _ in range(2)]
        first, second = map(int, self._buffers)
        sides = tuple(map(np.int32, contest.shape))
        if spec.kind is Kind.VOLUME:
            margin = values["search_radius"] + values["patch_radius"]
            cells = (2 * values["patch_radius"] + 1) ** 3
            (sigma,) = values["sigma"]
            scalars = np.float32(1 / (2 * sigma**2 * cells)), np.float32(2 * sigma**2)
            block = (32, 4, 2) if contest.level == "global" else (16, 16, 1)
            shared = 4 * (1 + 2 * margin) * (16 + 2 * margin) ** 2
            shared *= contest.level == "shared"
            padded = self._upload(np.pad(pixels, margin, mode="symmetric"))
            arguments = {"": (padded, first, *scalars, *sides)}
        else:
            whole = values["search"] == "image"
            margin = values["patch"] // 2 + (0 if whole else values["search_radius"])
            block, shared = (32, 8, 1), 0
            wide = np.pad(pixels, margin, mode="symmetric")
            padded = self._upload(wide)
            if contest.level == "texture":
                texture = Texture(wide.shape[1], wide.shape[0], wide.dtype, None)
                self._buffers.append(texture)
                texture.fill(padded, card.stream)
                card.stream.synchronize()
                padded = texture.handle
            weights = patch_weights(values) / np.sqrt(np.float32(values["filter_sigma"]))
            table: tuple[int, ...] = ()
            if contest.level == "global":
                table = (self._upload(weights),)
            else:
                module, _ = card.function(cubin, "mri_global")
                cuda.memcpy_htod(module.get_global("constant_g")[0], weights)
            arguments = {
                "_z": (padded, *table, first, *sides),
                "_f": (padded, *table, first, second, *sides),
            }
        self._target = first if spec.kind is Kind.VOLUME else second
        reversed_sides = (*reversed(contest.shape), 1)[:3]
        grid = tuple(-(-side // b) for side, b in zip(reversed_sides, block, strict=True))
        self._launches = [
            (card.function(cubin, contest.kernels + name)[1], [_wide(a) for a in args])
            for name, args in arguments.items()
        ]
        self._shape = {"grid": grid, "block": block, "shared": shared}

    def _upload(self, values: NDArray[Any]) -> int:
        self._buffers.append(self._card.allocate(values.nbytes))
        address = int(self._buffers[-1])
        self._card.cuda.memcpy_htod(address, np.ascontiguousarray(values))
        return address

    def _run(self) -> tuple[NDArray[np.float32], float]:
        cuda = self._card.cuda
        begin, end = cuda.Event(), cuda.Event()
        begin.record()
        for function, arguments in self._launches:
            function(*arguments, **self._shape)
        end.record()
        end.synchronize()
        cuda.memcpy_dtoh(self._result, self._target)
        return self._result.copy(), end.time_since(begin) * 1e-3


def _wide(argument: Any) -> Any:
    """Return an address as the eight bytes that a kernel takes it in."""
    return np.uint64(argument) if isinstance(argument, int) else argument


def ours(backend: CudaBackend, contest: Contest) -> tuple[NDArray[np.float32], float]:
    """Return the program's result and the seconds that its kernels took."""
    pixels = noisy(contest.shape)
    source = Image.from_array(pixels) if pixels.ndim == 2 else Scan((Volume.from_array(pixels),))
    request = Request.create(
        source, contest.filter, contest.parameters, device=Device.GPU, level=contest.level
    )
    result = execute(request, {"gpu": backend, "cpu": CpuBackend()})
    (seconds,) = (stage.seconds for stage in result.stages if stage.name == "kernel")
    return result.output.planes[..., 0], seconds


def measure(backend: CudaBackend, contest: Contest, rounds: int = ROUNDS) -> dict[str, Any]:
    """Time both in turns; the first round, which warms up, does not count."""
    times: dict[str, list[float]] = {"ours": [], "textbook": []}
    with contextlib.closing(Plain(backend, contest)) as plain:
        for _ in range(rounds + 1):
            times["ours"].append(ours(backend, contest)[1])
            times["textbook"].append(plain.run()[1])
    spec = filters.get(contest.filter)
    return {
        "filter": contest.filter,
        "label": spec.describe(spec.validate(contest.parameters)),
        "size": contest.size,
        "level": contest.level,
        **{name: seconds[1:] for name, seconds in times.items()},
        "batch": 1,
    }


def rows(backend: CudaBackend) -> Iterator[dict[str, Any]]:
    for contest in contests():
        yield measure(backend, contest)


def main(path: str = "") -> None:
    backend = CudaBackend(compiler=Nvrtc())
    measured = []
    for row in rows(backend):
        measured.append(row)
        mine, plain = (1e3 * statistics.median(row[name]) for name in ("ours", "textbook"))
        verdict = "" if mine <= BAR * plain else f"  slower than {BAR} times"
        print(
            f"{row['label'][:60]:60s} {row['size']:>12s} {row['level']:>10s} "
            f"{mine:9.3f} ms, plain {plain:9.3f} ms: {mine / plain:.2f}{verdict}",
            flush=True,
        )
    backend.close()
    if path:
        Path(path).write_text(json.dumps(measured, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
