"""The wheel: its content, and that it works away from the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image as PillowImage

from tests.backends.emulated import needs_compiler
from tests.paths import ROOT

pytestmark = pytest.mark.slow


def files_under(folder: str, *suffixes: str) -> set[str]:
    """Return the checkout's files of some kinds as paths below the root."""
    return {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / folder).rglob("*")
        if path.suffix in suffixes
        and not path.is_relative_to(ROOT / "resources" / "screenshots")
        and not path.is_relative_to(ROOT / "resources" / "bench")
    }


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy, with files in it that must come along or stay away."""
    source = tmp_path_factory.mktemp("source")
    for name in ("app", "kernels", "resources"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    (source / "kernels" / "probe.cu").write_text("// a kernel\n")
    (source / "kernels" / "common").mkdir()
    (source / "kernels" / "common" / "probe.cuh").write_text("// a header\n")
    (source / "resources" / "screenshots").mkdir(exist_ok=True)
    (source / "resources" / "screenshots" / "probe.png").write_bytes(b"not wanted")
    target = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-build-isolation", "--wheel-dir", str(target), str(source))
    (built,) = target.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("installed")
    pip("install", "--no-compile", "--target", str(target), str(wheel))
    return target


def pip(command: str, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pip", command, "--quiet", "--no-index", "--no-deps", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def run_installed(installed: Path, *arguments: str, cwd: Path) -> str:
    return run_python(installed, "-m", "kernelscope", *arguments, cwd=cwd)


def run_python(installed: Path, *arguments: str, cwd: Path) -> str:
    """Run the installed program; the checkout is neither the folder nor on the path."""
    done = subprocess.run(
        [sys.executable, "-P", *arguments],
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_wheel_holds_the_program_and_nothing_else(wheel: Path) -> None:
    content = set(zipfile.ZipFile(wheel).namelist())
    expected = {
        path.removeprefix("app/")
        for path in files_under("app", ".py", ".pyi", ".yaml", ".c", ".h", ".typed")
    } | {
        "kernelscope/kernels/probe.cu",
        "kernelscope/kernels/common/probe.cuh",
    }
    expected |= {f"kernelscope/{path}" for path in files_under("kernels", ".cu", ".cuh")}
    resources = {
        path
        for path in files_under("resources", ".png", ".bmp", ".svg", ".csv", ".md", ".toml", ".qss")
        if path != "resources/README.md"
    }
    assert resources
    resources |= set(files_under("resources/exercises", ".json", ".cu", ".cuh"))
    resources |= set(files_under("resources/templates", ".cu", ".txt", ".bash"))
    reports = {path.name for path in (ROOT / "resources" / "bench").glob("*.json")}
    assert len(reports) > 20
    resources |= {f"resources/bench/{name}" for name in reports}
    expected |= {f"kernelscope/{path}" for path in resources}
    expected |= {
        f"kernelscope/{path}" for path in files_under("resources/desktop", ".desktop", ".xml")
    }
    program = {name for name in content if ".dist-info/" not in name and ".data/" not in name}
    assert program == expected
    assert any(name.endswith("licenses/LICENSE") for name in content)


def test_installed_program_finds_its_folders(installed: Path, tmp_path: Path) -> None:
    code = (
        "import kernelscope.base.paths as p;"
        "print(p.RESOURCES, p.KERNELS, (p.KERNELS / 'probe.cu').exists())"
    )
    assert run_python(installed, "-c", code, cwd=tmp_path).split() == [
        str(installed / "kernelscope" / "resources"),
        str(installed / "kernelscope" / "kernels"),
        "True",
    ]


def test_installed_program_has_the_recorded_figures(installed: Path, tmp_path: Path) -> None:
    code = (
        "from kernelscope.bench.recorded import Recorded, Wanted, entries\n"
        "from kernelscope.engine.step import Step\n"
        "wanted = Wanted(Step.of_numbers('median', {'size': 3}), (4096, 4096))\n"
        "found = Recorded.read().nearest(wanted)\n"
        "print(found['tuned'].card, found['tuned'].seconds > 0, len(entries()) > 10)"
    )
    found = run_python(installed, "-c", code, cwd=tmp_path).split()
    assert found == ["H200", "True", "True"]  # of this size and mask


def test_installed_program_works_elsewhere(installed: Path, tmp_path: Path) -> None:
    assert "greyscale" in run_installed(installed, "list", cwd=tmp_path)
    sample = installed / "kernelscope" / "resources" / "camera.bmp"
    run_installed(installed, "apply", "greyscale", str(sample), "out.png", cwd=tmp_path)
    with PillowImage.open(sample) as before, PillowImage.open(tmp_path / "out.png") as after:
        np.testing.assert_array_equal(np.asarray(before), np.asarray(after))


@pytest.mark.exhaustive
@needs_compiler
def test_installed_kernels_run_on_the_emulated_gpu(installed: Path, tmp_path: Path) -> None:
    sample = str(installed / "kernelscope" / "resources" / "camera.bmp")
    for device in ("cpu", "emulated"):
        options = ["--device", device, "--size", "3"]
        run_installed(installed, "apply", "median", sample, f"{device}.png", *options, cwd=tmp_path)
    cpu, emulated = (PillowImage.open(tmp_path / f"{name}.png") for name in ("cpu", "emulated"))
    np.testing.assert_array_equal(np.asarray(emulated), np.asarray(cpu))


WINDOW = """
from PySide6.QtCore import QTimer
from kernelscope.teach import manual
from kernelscope.gui import application
from kernelscope.gui.widgets import theme
from kernelscope.gui.window.main_window import MainWindow

class Watched(MainWindow):
    def open_first(self, path):
        super().open_first(path)
        self.watch = QTimer(self, interval=50, timeout=self.look)
        self.watch.start()

    def look(self):
        if self.windowTitle().startswith("camera"):
            self.watch.stop()
            print(self.windowTitle(), theme.app_icon().isNull(), len(manual.page("index")) > 1000)
            self.close()

application.MainWindow = Watched
raise SystemExit(application.run())
"""


@pytest.mark.exhaustive
def test_installed_window_opens_its_sample(installed: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", WINDOW],
        cwd=tmp_path,
        env=os.environ
        | {
            "PYTHONPATH": str(installed),
            "QT_QPA_PLATFORM": "offscreen",
            "XDG_CONFIG_HOME": str(tmp_path / "config"),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=600,  # a window without its sample would wait for ever
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "camera-salt-pepper.png – Kernelscope False True\n"


def test_command_is_declared(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = (name for name in archive.namelist() if name.endswith("entry_points.txt"))
    assert "kernelscope = kernelscope.cli.main:main" in archive.read(name).decode()


@pytest.mark.parametrize("start", [["-m", "kernelscope"], ["-P", "-m", "kernelscope"]])
def test_a_package_called_app_elsewhere_does_no_harm(
    installed: Path, tmp_path: Path, start: list[str]
) -> None:
    """Many projects have one, in the folder one stands in or earlier on the path."""
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__init__.py").write_text("raise SystemExit('the wrong app')\n")
    done = subprocess.run(
        [sys.executable, *start, "list"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(installed)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "greyscale" in done.stdout


def test_a_system_finds_the_menu_entry(wheel: Path) -> None:
    """Installed for the system or a user, these are where desktops look."""
    names = {
        Path(each).name: each for each in zipfile.ZipFile(wheel).namelist() if ".data/" in each
    }
    folders = {
        "kernelscope.desktop": "applications",
        "kernelscope-mime.xml": "mime/packages",
        "kernelscope.metainfo.xml": "metainfo",
        "kernelscope.svg": "icons/hicolor/scalable/apps",
        "kernelscope.png": "icons/hicolor/256x256/apps",
    }
    assert names.keys() == folders.keys()
    for name, folder in folders.items():
        assert names[name].endswith(f".data/data/share/{folder}/{name}")


def test_nothing_called_app_is_installed(installed: Path) -> None:
    names = {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")}
    assert names - {"bin", "share"} == {"kernelscope"}


def test_starts_from_a_bare_checkout(tmp_path: Path) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-P", str(ROOT / "main.py"), "--version"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("Kernelscope "), done.stderr
