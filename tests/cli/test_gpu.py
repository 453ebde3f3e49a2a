"""The options of the command line that are about the GPU, on any machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from kernelscope import backends
from kernelscope.backends.cuda import CudaBackend
from kernelscope.cli.common import byte_size
from kernelscope.cli.main import main
from kernelscope.engine.backend import Availability, Backend
from kernelscope.engine.request import Request
from kernelscope.engine.result import Result
from kernelscope.files import SAMPLES


@pytest.mark.parametrize(
    ("text", "size"), [("1000000", 1_000_000), ("256M", 256 << 20), ("1.5g", 3 << 29)]
)
def test_sizes(text: str, size: int) -> None:
    assert byte_size(text) == size


@pytest.mark.parametrize(
    "option",
    [
        *(
            "--memory-limit=12Q",
            "--memory-limit=0",
            "--memory-limit=0.5",
            "--gpu=-1",
            "--gpus=0,x",
            "--gpus=1,1",
        ),
        *("--block=16", "--block=8by8"),
    ],
)
def test_a_wrong_gpu_option_is_wrong_usage(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["apply", "mean", "in.png", "out.png", option])
    assert stop.value.code == 2
    assert option.partition("=")[2] in capsys.readouterr().err


def test_choosing_gpus_without_one_gives_a_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    none = Availability(False, "No NVIDIA driver was found.")
    monkeypatch.setattr(CudaBackend, "availability", lambda self: none)
    arguments = ["apply", "greyscale", str(SAMPLES[0].path), str(tmp_path / "out.png")]
    assert main([*arguments, "--gpus", "0,1"]) == 0
    said = "--gpu has no effect, because the CPU computes: No NVIDIA driver was found."
    assert said in capsys.readouterr().err
    for options in ([], ["--gpu", "0", "--device", "cpu"]):
        assert main([*arguments, *options]) == 0
        assert "--gpu" not in capsys.readouterr().err


def test_the_gpu_options_reach_the_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[Request] = []
    numbers: list[tuple[int, ...]] = []
    real = backends.create_backends

    def create(gpus: Sequence[int] | None = None, **options: bool) -> dict[str, Backend]:
        created = real(gpus, **options)
        assert isinstance(created["gpu"], CudaBackend)
        numbers.append(created["gpu"].ordinals)
        return created

    def run(request: Request, *_: object) -> Result:
        requests.append(request)
        return Result(request, request.image, "cpu", "serial", ())

    monkeypatch.setattr(backends, "create_backends", create)
    monkeypatch.setattr("kernelscope.engine.steps.execute", run)
    source, target = str(SAMPLES[0].path), str(tmp_path / "out.png")
    options = ["--repeat", "7", "--memory-limit", "2M", "--gpu", "3", "--block", "14x18"]
    assert main(["apply", "mean", source, target, *options]) == 0
    assert (requests[0].options.repeat, requests[0].options.memory_limit) == (7, 2 << 20)
    assert requests[0].options.block == (14, 18)
    assert numbers[-1] == (3,)
    assert main(["apply", "mean", source, target, "--gpus", "1,0"]) == 0
    assert numbers[-1] == (1, 0)
    monkeypatch.setenv("KERNELSCOPE_GPU", "2")
    assert main(["apply", "mean", source, target]) == 0
    assert (requests[2].options.repeat, requests[2].options.memory_limit, numbers[-1]) == (
        1,
        None,
        (2,),
    )
    assert requests[2].options.block is None
    monkeypatch.setenv("KERNELSCOPE_GPU", "0,2")
    assert main(["apply", "mean", source, target]) == 0
    assert numbers[-1] == (0, 2)
    for wrong in ("first", "0,0"):
        monkeypatch.setenv("KERNELSCOPE_GPU", wrong)
        assert main(["info"]) == 1


def test_info_prints_the_facts_of_the_devices(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    assert "\nCPU: Processor\n  Name  " in capsys.readouterr().out
