"""Whole processes: every way out is clean, a lost context is replaced, the cache is shared."""

from __future__ import annotations

import signal

import pytest

from tests.gpu.conftest import RunScript

pytestmark = pytest.mark.gpu


def test_closed(script: RunScript) -> None:
    done = script("run(); backend.close(); print('fine')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")


def test_closing_ends_the_threads(script: RunScript) -> None:
    done = script(
        """
        run(Image.from_array(np.zeros((4096, 4096), np.uint8)))
        names = [thread.name for thread in threading.enumerate()]
        assert any("kernelscope" in name for name in names), names
        backend.close()
        assert threading.enumerate() == [threading.main_thread()]
        """
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_never_closed(script: RunScript) -> None:
    done = script("run(); print('fine')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")


def test_never_closed_on_another_thread(script: RunScript) -> None:
    done = script("thread = threading.Thread(target=run); thread.start(); print('fine')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")


def test_reopened_many_times(script: RunScript) -> None:
    done = script("for _ in range(20):\n    run()\n    backend.close()\nprint('fine')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine\n", "")


def test_an_exception(script: RunScript) -> None:
    done = script("result = run()\nraise ValueError('bug')")
    assert done.returncode == 1
    assert done.stderr.endswith("ValueError: bug\n")
    assert done.stderr.count("\n") <= 4


def test_sys_exit(script: RunScript) -> None:
    done = script("run(); sys.exit(3)")
    assert (done.returncode, done.stderr) == (3, "")


def test_ctrl_c_while_running(script: RunScript) -> None:
    """The device's thread stops at the next launch: all would take longer than a script may."""
    done = script(
        """
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's "&" ignores it
        big = Image.from_array(np.zeros((4096, 4096), np.uint8))
        run()

        request = Request.create(
            big, "median", {"size": 9}, device=Device.GPU, level="single-block", repeat=1000
        )
        launched = threading.Event()

        def interrupt():
            launched.wait()
            os.kill(os.getpid(), signal.SIGINT)

        def progress(stage, fraction):
            if stage == "kernel":
                launched.set()

        threading.Thread(target=interrupt).start()
        execute(request, {"gpu": backend, "cpu": CpuBackend()}, progress=progress)
        """
    )
    assert done.returncode == -signal.SIGINT
    assert done.stderr.endswith("KeyboardInterrupt\n")


def test_a_lost_context_is_reported_and_not_fatal(script: RunScript) -> None:
    """A kernel that writes where it must not takes CUDA with it, but not the program."""
    done = script(
        """
        launch = executor.launch
        good = run().image.pixels
        executor.launch = lambda step, strip, source, target, work: launch(
            step, strip, source, 0x10, work
        )
        for _ in range(3):
            try:
                run()
            except AppError as error:
                print(error)
            executor.launch = launch
        cpu = CpuBackend()
        request = Request.create(image, "mean", device=Device.CPU)
        assert (execute(request, {"cpu": cpu}).image.pixels == good).all()
        cpu.close()
        """
    )
    assert (done.returncode, done.stderr) == (0, "")
    first, second, third = done.stdout.splitlines()
    assert "illegal" in first
    assert second == third
    assert "stopped with an error earlier" in second
    assert all("Restart Kernelscope" in line for line in (first, second))


def test_another_error_leaves_the_gpu_usable(script: RunScript) -> None:
    done = script(
        """
        good = run().image.pixels
        block = kernel.block_of
        kernel.block_of = lambda *rest: (4096, 1, 1)
        try:
            run(filter_id="negative")  # its block stays with its plan
        except AppError as error:
            print(error)
        kernel.block_of = block
        assert (run().image.pixels == good).all()
        """
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("The GPU cannot do this")


def test_the_second_process_compiles_nothing(
    script: RunScript, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    code = """
        compile_kernel, asked = Nvrtc.compile, []
        Nvrtc.compile = lambda self, *rest: asked.append(rest[0]) or compile_kernel(self, *rest)
        run(filter_id="median", parameters={"size": 5})
        print(sorted(set(asked)))
    """
    first, second = script(code), script(code)
    assert first.stdout == "['median']\n", first.stderr
    assert second.stdout == "[]\n", second.stderr
