"""The script of ``completion``, in bash."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kernelscope.cli.common import every_filter
from kernelscope.cli.main import COMMANDS
from kernelscope.cli.setting_up import script
from tests.cli.running import refused, run

OPERATIONS = ("opening", "closing", "gradient", "white-top-hat", "black-top-hat")

BASH = shutil.which("bash")

pytestmark = pytest.mark.skipif(BASH is None, reason="bash is not installed")


@pytest.fixture(scope="module")
def completing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "script.sh"
    path.write_text(
        script() + 'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _kernelscope\n'
        'printf "%s\\n" "${COMPREPLY[@]}"\n',
        encoding="utf-8",
    )
    return path


@pytest.mark.slow
def test_words_are_completed(completing: Path, here: Path) -> None:
    (here / "photo.png").touch()

    def found(line: str) -> set[str]:
        """Return the ways to complete the last word of a line."""
        command = [str(BASH), str(completing), *line.split(" ")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert not done.stderr
        return set(done.stdout.split())

    assert found("kernelscope ") == {*COMMANDS, "photo.png"}
    assert found("kernelscope de") == {"denoise"}
    names = {name.replace("_", "-") for name in every_filter()}
    assert found("kernelscope apply ") == {*names, "--recipe"}
    assert found("kernelscope apply medi") == {"median"}
    assert found("kernelscope apply median --si") == {"--size"}
    assert found("kernelscope apply median photo.png out.png : so") == {"sobel"}
    assert found("kernelscope apply median photo.png out.png : sobel --fo") == {"--form"}
    assert found("kernelscope apply median ph") == {"photo.png"}
    assert {"--jobs"} <= found("kernelscope batch --")
    assert found("kernelscope apply median photo.png out.png --border re") == {"reflect", "reduce"}
    assert found("kernelscope apply morphology --operation ") == set(OPERATIONS)
    assert found("kernelscope apply median photo.png out.png : morphology --footprint d") == {
        "disk"
    }
    assert found("kernelscope apply median --size ph") == {"photo.png"}
    assert found("kernelscope denoise --devi") == {"--device"}
    assert found("kernelscope denoise photo.png out.png --device e") == {"emulated"}
    assert found("kernelscope trace mea") == {"mean"}
    assert found("kernelscope trace gaussian-n") == set()
    assert found("kernelscope kernel mean --re") == {"--report-only"}
    assert found("kernelscope trace mean --level si") == {"single-block"}
    assert found("kernelscope apply mean photo.png out.png --level se") == {"serial"}
    assert found("kernelscope completion ") == {"bash", "zsh"}
    assert {"--save-recipe", "--repeat"} <= found("kernelscope apply mean --")


@pytest.mark.slow
def test_it_is_printed_for_two_shells() -> None:
    for shell in ("bash", "zsh"):
        assert run(f"completion {shell}").out == script()
    refused("completion cmd", status=2)
