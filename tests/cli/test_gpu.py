"""The options of the command line that are about the GPU, on any machine."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kernelscope import backends
from kernelscope.backends.cuda import CudaBackend
from kernelscope.cli.common import byte_size
from kernelscope.engine.backend import Availability, Backend
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.files import SAMPLES
from tests.cli.running import refused, run


@pytest.mark.parametrize(
    ("text", "size"), [("1000000", 1_000_000), ("256M", 256 << 20), ("1.5g", 3 << 29)]
)
def test_sizes(text: str, size: int) -> None:
    assert byte_size(text) == size


@pytest.mark.parametrize(
    "option",
    [
        *("--memory-limit=12Q", "--memory-limit=0", "--memory-limit=0.5"),
        *("--gpu=-1", "--gpus=0,x", "--gpus=1,1", "--block=16", "--block=8by8"),
    ],
)
def test_a_wrong_gpu_option_is_wrong_usage(option: str) -> None:
    error = refused("apply mean in.png out.png", option, status=2)
    assert option.partition("=")[2] in error


def test_choosing_gpus_without_one_gives_a_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    none = Availability(False, "No NVIDIA driver was found.")
    monkeypatch.setattr(CudaBackend, "availability", lambda self: none)
    line = f"apply greyscale {SAMPLES[0].path} out.png"
    said = "--gpu has no effect, because the CPU computes: No NVIDIA driver was found."
    assert said in run(f"{line} --gpus 0,1").err
    for options in ("", "--gpu 0 --device cpu"):
        assert "--gpu" not in run(f"{line} {options}").err


def test_the_gpu_options_reach_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[Request] = []
    numbers: list[tuple[int, ...]] = []
    real = backends.create_backends

    def create(gpus: Sequence[int] | None = None, **options: bool) -> dict[str, Backend]:
        created = real(gpus, **options)
        assert isinstance(created["gpu"], CudaBackend)
        numbers.append(created["gpu"].ordinals)
        return created

    def execute(request: Request, *_: object) -> Result:
        requests.append(request)
        return Result(request, request.image, "cpu", "serial", ())

    monkeypatch.setattr(backends, "create_backends", create)
    monkeypatch.setattr("kernelscope.engine.steps.execute", execute)
    line = f"apply mean {SAMPLES[0].path} out.png"
    run(f"{line} --repeat 7 --memory-limit 2M --gpu 3 --block 14x18")
    options = requests[0].options
    assert (options.repeat, options.memory_limit, options.block) == (7, 2 << 20, (14, 18))
    assert numbers[-1] == (3,)
    run(f"{line} --gpus 1,0")
    assert numbers[-1] == (1, 0)
    monkeypatch.setenv("KERNELSCOPE_GPU", "2")
    run(line)
    options = requests[2].options
    assert (options.repeat, options.memory_limit, options.block) == (1, None, None)
    assert numbers[-1] == (2,)
    monkeypatch.setenv("KERNELSCOPE_GPU", "0,2")
    run(line)
    assert numbers[-1] == (0, 2)
    for wrong in ("first", "0,0"):
        monkeypatch.setenv("KERNELSCOPE_GPU", wrong)
        run("info", status=1)
