"""The emulated GPU: threads that wait for each other, warps, faults, and where it is offered."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from kernelscope.backends.cpu import CpuBackend
from kernelscope.backends.cuda.compiler import CompileError
from kernelscope.backends.emulator import EmulatorBackend
from kernelscope.backends.emulator.compiler import HostCompiler
from kernelscope.backends.emulator.launch import Memory, blocks_at_once, run_launch
from kernelscope.backends.emulator.translation import translate
from kernelscope.base.compiled import load_library
from kernelscope.base.errors import AppError, Cancelled, DeviceUnavailable
from kernelscope.cli.main import main
from kernelscope.engine.backend import Backend, close_all
from kernelscope.engine.context import RunContext
from kernelscope.engine.control import CancelToken
from kernelscope.engine.options import Device, RunOptions
from kernelscope.engine.request import Request
from kernelscope.engine.run import execute
from kernelscope.engine.step import Step
from kernelscope.files import SAMPLES, read_image
from kernelscope.images.image import Image
from kernelscope.schema.borders import Border
from kernelscope.schema.launch import CudaTask, Launch
from tests.backends.emulated import needs_compiler
from tests.backends.quick_compiler import QuickCompiler, quick_compiler
from tests.patience import PATIENCE

pytestmark = [needs_compiler, pytest.mark.slow]

GEOMETRY = "struct Geometry { int width, height, channels, out_width, first, last, a, b, c; };\n"


def build(body: str, before: str = "") -> ctypes.CDLL:
    """Compile a kernel ``tried(const int* source, int* output, Geometry g)`` with that body."""
    compiler = QuickCompiler.find()  # with the flags of the program
    assert compiler is not None
    source = (
        f"{GEOMETRY}{before}"
        'extern "C" __global__ void tried(const int* source, int* output, Geometry g)\n'
        f"{{\n{body}\n}}\n"
    )
    return load_library(compiler.compile("tried", translate(source, {}, "tried"), "host", {}).code)


def run(
    body: str,
    source: np.ndarray,
    block: tuple[int, int] = (64, 1),
    token: CancelToken | None = None,
    before: str = "",
) -> np.ndarray:
    """Return the output of one thread a cell of a row of 32-bit cells."""
    cells = np.ascontiguousarray(source.astype(np.int32).reshape(1, -1, 1))
    task = CudaTask(cells.shape, cells.shape, cells.dtype, {}, Border.REFLECT, "global")
    launch = Launch("tried", {}, block, 1, 1)
    memory = Memory(cells, np.zeros_like(cells), {})
    reported: list[float] = []
    library = build(body, before)
    run_launch(library, launch, task, memory, [], token or CancelToken(), reported.append)
    assert reported[-1] == 1
    return memory.output.ravel()


INDEX = "const int i = blockIdx.x * blockDim.x + threadIdx.x;"


def test_threads_of_a_block_wait_for_each_other() -> None:
    body = f"""{INDEX}
    __shared__ int cells[64];
    cells[threadIdx.x] = source[i];
    __syncthreads();
    output[i] = cells[63 - threadIdx.x];"""
    source = np.arange(192)
    expected = source.reshape(3, 64)[:, ::-1].ravel()
    np.testing.assert_array_equal(run(body, source), expected)


def test_without_the_barrier_the_fault_shows() -> None:
    body = f"""{INDEX}
    __shared__ int cells[64];
    cells[threadIdx.x] = source[i];
    output[i] = cells[63 - threadIdx.x];"""
    source = np.arange(192)
    assert (run(body, source) != source.reshape(3, 64)[:, ::-1].ravel()).any()


def test_threads_that_have_ended_are_not_waited_for() -> None:
    body = f"""{INDEX}
    if (threadIdx.x % 3 == 0) return;
    __syncthreads();
    output[i] = source[i];"""
    source = np.arange(1, 65)
    expected = np.where(np.arange(64) % 3 == 0, 0, source)
    np.testing.assert_array_equal(run(body, source), expected)


def test_kernels_do_not_share_the_shared_memory_of_a_template() -> None:
    """A linker keeps one copy of it for all libraries: also of another size."""
    before = """template <int N> __device__ int* cells()
    {
        __shared__ int cells[64];
        return cells;
    }
    """
    source = np.arange(1, 65)
    body = f"{INDEX} cells<1>()[i] = source[i]; __syncthreads(); output[i] = cells<1>()[63 - i];"
    np.testing.assert_array_equal(run(body, source, before=before), source[::-1])
    assert not run(f"{INDEX} output[i] = cells<1>()[i];", source, before=before).any()


def test_different_barriers_are_a_fault_not_a_hang() -> None:
    body = f"""{INDEX}
    if (threadIdx.x < 32) __syncthreads(); else __syncwarp();
    if (threadIdx.x >= 32) asm volatile("bar.sync %0, %1;" :: "r"(1), "n"(64) : "memory");
    output[i] = source[i];"""
    with pytest.raises(DeviceUnavailable, match="different barriers"):
        run(body, np.arange(64))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("__shfl_down_sync(~0u, x, 5)", lambda x: np.r_[x[5:], x[-5:]]),
        ("__shfl_up_sync(~0u, x, 3)", lambda x: np.r_[x[:3], x[:-3]]),
        ("__shfl_xor_sync(~0u, x, 12)", lambda x: x[np.arange(32) ^ 12]),
        ("__shfl_sync(~0u, x, 7)", lambda x: np.full(32, x[7])),
        ("__shfl_sync(~0u, x, 1, 8)", lambda x: np.repeat(x[1::8], 8)),
        ("__ballot_sync(~0u, x > 40)", lambda x: np.full(32, sum(1 << i for i in range(9, 31)))),
        ("__popc(__ballot_sync(~0u, threadIdx.x < 5))", lambda x: np.full(32, 5)),
    ],
)
def test_lanes_of_a_warp_exchange_values(call: str, expected) -> None:
    x = np.arange(32, 64)
    x[-1] = 0
    body = f"{INDEX} const int x = source[i]; output[i] = {call};"
    np.testing.assert_array_equal(run(body, x, (32, 1)).astype(np.uint32), expected(x))


def test_a_sum_over_a_warp_in_halves_of_it() -> None:
    body = f"""{INDEX}
    int sum = source[i];
    const unsigned mask = threadIdx.x < 16 ? 0xffffu : 0xffff0000u;
    if (threadIdx.x < 16) {{
        for (int by = 8; by; by /= 2) sum += __shfl_xor_sync(mask, sum, by, 16);
    }} else {{
        for (int by = 8; by; by /= 2) sum += 2 * __shfl_xor_sync(mask, 0, by, 16) + 1;
    }}
    output[i] = sum;"""
    source = np.arange(32)
    expected = np.where(source < 16, source[:16].sum(), source + 4)
    np.testing.assert_array_equal(run(body, source, (32, 1)), expected)


def test_bytes_of_a_word() -> None:
    body = f"{INDEX} output[i] = __byte_perm(source[i], 0x55667788, 0x4321);"
    source = np.tile([0x11223344, 0x01020304], 32)
    expected = np.tile([0x88112233 - 2**32, 0x88010203 - 2**32], 32)
    np.testing.assert_array_equal(run(body, source), expected)


def test_saturated_floats_are_between_0_and_1() -> None:
    source = np.resize(np.array([-1.5, 0, 0.25, 1, 7, np.inf, -np.inf, np.nan], np.float32), 64)
    body = f"{INDEX} output[i] = __float_as_int(__saturatef(__int_as_float(source[i])));"
    found = run(body, source.view(np.int32)).view(np.float32)
    np.testing.assert_array_equal(found[:8], np.array([0, 0, 0.25, 1, 1, 1, 0, 0], np.float32))


def test_floats_are_rounded_to_halves_and_back() -> None:
    halves = np.arange(0x7C01, dtype=np.uint16).view(np.float16).astype(np.float32)
    between = (halves[:-1] + halves[1:]) / 2
    values = np.concatenate([halves, between[:-1], [0.0, 65519.0, 65520.0, 1e9]]).astype(np.float32)
    values = np.concatenate([values, -values])
    body = f"""{INDEX}
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(__int_as_float(source[i])));
    float back;
    asm("cvt.f32.f16 %0, %1;" : "=f"(back) : "h"(bits));
    output[i] = __float_as_int(back);"""
    padded = np.zeros(-(-len(values) // 64) * 64, np.float32)
    padded[: len(values)] = values
    back = run(body, padded.view(np.int32)).view(np.float32)
    with np.errstate(over="ignore"):
        expected = padded.astype(np.float16).astype(np.float32)
    np.testing.assert_array_equal(back.view(np.int32), expected.view(np.int32))


def test_products_of_matrices_take_floats_of_11_bits() -> None:
    """As PTX has them: each lane holds cells of rows and columns by its number."""
    body = f"""{INDEX}
    const int n = threadIdx.x / 4, t = threadIdx.x % 4;
    const auto bits = [](int value) {{ return __float_as_uint(value) | 0x1fff; }};
    const auto a = [&](int y, int x) {{ return bits(8 * y + x * 37 % 11 - 50); }};
    const auto b = [&](int y, int x) {{ return bits(y * 29 % 53 - x); }};
    float d[] = {{1, 2, 3, 4}};
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{{%0, %1, %2, %3}}, {{%4, %5, %6, %7}}, {{%8, %9}}, {{%0, %1, %2, %3}};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a(n, t)), "r"(a(n + 8, t)), "r"(a(n, t + 4)), "r"(a(n + 8, t + 4)), "r"(b(t, n)),
          "r"(b(t + 4, n)));
    output[i] = (int)d[blockIdx.x];"""
    found = run(body, np.zeros(128), (32, 1)).reshape(2, 2, 8, 4)  # below, beside, n, t
    (y, x), (v, u) = np.mgrid[:16, :8], np.mgrid[:8, :8]
    product = (8 * y + x * 37 % 11 - 50) @ (v * 29 % 53 - u)
    wanted = product.reshape(2, 8, 4, 2).transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(found, wanted + np.array([1, 2, 3, 4]).reshape(2, 2, 1, 1))


def test_a_run_is_cancelled() -> None:
    token = CancelToken()
    token.cancel()
    with pytest.raises(Cancelled):
        run(f"{INDEX} output[i] = source[i];", np.arange(64), token=token)


def test_a_compiler_error_names_the_line_of_the_kernel() -> None:
    compiler = HostCompiler.find()
    assert compiler is not None
    source = '#line 7 "mean.cu"\n__global__ void tried(int* output) { output[0] = nothing; }\n'
    with pytest.raises(AppError, match=r"mean\.cu:7:.*nothing"):
        compiler.compile("tried", translate(source, {}, "tried"), "host", {})


def test_a_compiler_that_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelscope.backends.emulator.compiler._SECONDS", 0.2)
    slow = HostCompiler((sys.executable, "-c", "import time; time.sleep(60)"))
    with pytest.raises(CompileError, match=r"a\.cu: it took more than 0 seconds"):
        slow.compile("a", "", "", {})


def test_auto_never_takes_it() -> None:
    backends: dict[str, Backend] = {
        "emulated": EmulatorBackend(threads=1),
        "cpu": CpuBackend(threads=1),
    }
    image = Image.from_array(np.arange(35, dtype=np.uint8).reshape(5, 7))
    try:
        for level in (None, "parallel"):
            assert execute(Request.create(image, "mean", level=level), backends).device == "cpu"
        with pytest.raises(AppError, match="level"):
            execute(Request.create(image, "mean", level="shared"), backends)
        options = RunOptions(Device.EMULATED, "shared", block=(16, 4))
        result = execute(Request(image, Step.of_numbers("mean", {}), options), backends)
        assert (result.device, result.level) == ("emulated", "shared")
        assert any("not that of a GPU" in notice for notice in result.notices)
    finally:
        close_all(backends.values())


STACKS = 256 << 20  # bytes of addresses for a block: 256 KiB for each of 1,024 threads


def addresses() -> int:
    """Return the bytes of addresses that this process uses."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(sys.platform != "linux", reason="asks Linux")
def test_a_thread_that_ends_gives_back_its_stacks() -> None:
    """Each X-ray has a thread of its own: some megabytes were kept of each."""
    threads, most = 8, []

    def work() -> None:
        run(f"{INDEX} output[i] = source[i];", np.arange(64))
        most.append(addresses())

    before = addresses()
    for _ in range(threads):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert max(most) > before + STACKS
    deadline = time.monotonic() + PATIENCE  # before Python 3.13 the thread may end a little later
    while addresses() > before + threads * STACKS // 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert addresses() < before + threads * STACKS // 2


def test_libraries_are_left_to_the_next_user_once_their_own_is_closed() -> None:
    """They cannot be unloaded: each X-ray would load those of a filter once more."""
    image = Image.from_array(np.arange(64, dtype=np.uint8).reshape(8, 8))
    request = Request.create(image, "negative")
    level = request.step.filter.levels(Device.GPU)[0]
    backends = [EmulatorBackend(quick_compiler(), threads=1) for _ in range(2)]
    first, second = [], []
    for backend in backends:
        backend.run(request, level, RunContext())
        first += [each._handle for each in backend._libraries.values()]
    assert len({*first}) == 2  # two at once have a copy each: a run has its state in the library
    for backend in backends:
        backend.close()
    for backend in backends:
        backend.run(request, level, RunContext())
        second += [each._handle for each in backend._libraries.values()]
        backend.close()
    assert {*second} <= {*first}


def test_it_is_offered_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, outputs = str(SAMPLES[0].path), [tmp_path / "cpu.png", tmp_path / "emulated.png"]
    for output in outputs:
        where = ["--device", output.stem] + (["--level", "shared"] if output.stem != "cpu" else [])
        assert main(["apply", "median", source, str(output), "--size", "5", *where]) == 0
    first, second = (read_image(output).pixels for output in outputs)
    np.testing.assert_array_equal(first, second)
    assert "not that of a GPU" in capsys.readouterr().err
    assert main(["info"]) == 0
    assert "kernels compiled by" in capsys.readouterr().out


def test_without_a_compiler_it_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HostCompiler, "find", classmethod(lambda cls: None))
    backend = EmulatorBackend()
    state = backend.availability()
    assert not state.available
    assert "emulator" in state.steps[0]
    assert not list(backend.facts())


def test_between_two_looks_at_the_token_there_is_little_work() -> None:
    def blocks(operations: float, steps: int = 0) -> int:
        launch = Launch(
            "kernel",
            {},
            block=(32, 8),
            bytes_per_sample=2.0,
            operations_per_sample=operations,
            steps=steps,
        )
        task = CudaTask(
            (1024, 1024, 1), (1024, 1024, 1), np.dtype(np.uint8), {}, Border.REFLECT, ""
        )
        return blocks_at_once(launch, task, 4096)

    assert blocks(1.0) == 64
    assert blocks(1e4) == 19  # 256 pixels a block, 5e7 operations
    assert blocks(1e4, steps=2) == 39
    assert blocks(1e9) == 1
