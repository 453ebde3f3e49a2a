"""The pages are true: their commands run, their example works, their site builds."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import tifffile

from kernelscope import filters
from kernelscope.backends.emulator.compiler import HostCompiler
from kernelscope.base import memory
from kernelscope.cli.main import main
from kernelscope.engine.step import default_text
from kernelscope.files import read_image, write_image
from kernelscope.images.image import Image
from kernelscope.library.session import session
from kernelscope.schema.borders import Border
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.samples import Kind
from kernelscope.teach import manual
from tests import builds
from tests.paths import ROOT

pytestmark = pytest.mark.slow

DOCS = ROOT / "resources" / "docs"
PACKAGE = ROOT / "app" / "kernelscope"
PAGES = [f"{page}.md" for pages in manual.SECTIONS.values() for page in pages]
SPECS = [spec for kind in Kind for spec in filters.discover(kind).values()]


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


def block(page: str, mark: str) -> str:
    """Return the code block after ``<!-- mark -->``."""
    found = re.search(rf"<!-- {re.escape(mark)} -->\n```\w+\n(.*?)```", text_of(page), re.DOTALL)
    assert found, f"{page} has no block {mark}"
    return found[1]


def commands(page: str) -> list[str]:
    lines = (line.strip() for line in text_of(page).splitlines())
    return [line for line in lines if line.startswith("kernelscope ")]


# The site ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site; links and anchors that lead nowhere make that fail."""
    target = tmp_path_factory.mktemp("site")
    command = ["-m", "mkdocs", "build", "--strict", "-f", ".ci/mkdocs.yml", "-d", str(target)]
    done = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "excluded" not in done.stderr, done.stderr
    return target


@pytest.mark.exhaustive
def test_every_page_has_a_place_in_the_site(site: Path) -> None:
    assert {path.name for path in DOCS.iterdir()} == set(PAGES)
    for page in PAGES:
        where = page.removesuffix(".md")
        assert (site / f"{where}.html").is_file(), page
    assert (site / "project" / "CHANGELOG.html").is_file()
    assert (site / "bench" / "index.html").is_file()


@pytest.mark.exhaustive
def test_filters_can_be_searched(site: Path) -> None:
    """Also where the page is opened as a file, which may load scripts only, and no worker."""
    script = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    index = json.loads(script.removeprefix("var __index = "))
    found = {entry["location"] for entry in index["docs"]}
    assert found >= {f"filters.html#{manual.filter_name(spec)}" for spec in SPECS}
    sources = re.findall(r'<script src="([^"]+)"', (site / "api.html").read_text(encoding="utf-8"))
    assert len(sources) > 1
    assert all((site / source).is_file() for source in sources), sources


def test_links_work_in_the_checkout_too() -> None:
    pages = [*DOCS.glob("*.md"), *ROOT.glob("*.md"), *(ROOT / "resources").glob("*/*.md")]
    assert len(pages) > len(PAGES)
    for page in pages:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_files_that_pages_name_are_there() -> None:
    """Paths in code type: from the root, or from the package, with or without the suffix."""
    folders = "|".join(path.name for path in PACKAGE.iterdir() if path.is_dir())
    missing, count = [], 0
    for page in [*DOCS.glob("*.md"), *ROOT.glob("*.md")]:
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for name in re.findall(r"`((?:app|tests|kernels|resources|\.ci)/[\w./-]+)`", text):
            if not re.search(r"spread|values_panel|ID", name):  # examples, and any name
                count += 1
                missing += [] if (ROOT / name).exists() else [f"{page.name}: {name}"]
        for name in re.findall(rf"`((?:{folders})/[\w/]+)`", text):
            count += 1
            there = (PACKAGE / name).exists() or (PACKAGE / f"{name}.py").exists()
            missing += [] if there else [f"{page.name}: {name}"]
    assert missing == []
    assert count > 15


def test_map_has_every_package_on_its_floor() -> None:
    """In the order of the import contract, and on one screen with the rest of the page."""
    text = text_of("architecture.md")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (layers,) = (
        contract["layers"]
        for contract in project["tool"]["importlinter"]["contracts"]
        if contract.get("containers") == ["kernelscope"]
    )
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    floors = [[name for name in layer.split(" | ") if name in folders] for layer in layers]
    lines = text.split("```text")[1].split("```")[0].splitlines()
    place = {
        name: next(n for n, line in enumerate(lines) if re.search(rf"\|  {name} ", line))
        for floor in floors
        for name in floor
    }
    heights = [{place[name] for name in floor} for floor in floors if floor]
    assert heights
    assert all(len(height) == 1 for height in heights), "those of a floor stand in one line"
    assert [*map(max, heights)] == sorted(map(max, heights)), "floors are in the contract's order"
    assert sorted(place) == sorted(folders)
    assert len(text.splitlines()) < 70


# Generated tables ----------------------------------------------------------------------


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.id)
def test_page_of_filters_is_complete(spec: FilterSpec) -> None:
    """Each filter has its line and its section, with everything that can be set."""
    text = manual.page("filters")
    name = manual.filter_name(spec)
    levels = ", ".join(level.id for level in spec.levels("gpu")) or "none"
    assert f"\n| [`{name}`](#{name}) | {spec.summary} | {levels} |\n" in text
    section = text.split(f"\n### {name}\n")[1].split("\n##")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `--")]
    assert rows == [
        f"| `--{parameter.name.replace('_', '-')}` | {manual.allowed(parameter)} | "
        f"{f'`{default_text(parameter)}`' if default_text(parameter) else 'none'} | "
        f"{parameter.help} |"
        for parameter in spec.parameters
    ]
    assert spec.source in section
    for level in (*spec.levels("cpu"), *spec.levels("gpu")):
        assert f"`{level.id}`" in section
    found = re.search(r"Borders: all but (.*?)\.", section)
    missing = re.findall(r"`(\w+)`", found[1]) if found else []
    offered = set(Border) if spec.kind is Kind.VOLUME else set(spec.borders)
    assert missing == [border for border in Border if border not in offered]


def test_borders_are_listed() -> None:
    text = manual.page("filters")
    for border in Border:
        assert f"| `{border}` | {border.help.replace('|', chr(92) + '|')} |\n" in text


@pytest.mark.parametrize("name", [page.removesuffix(".md") for page in PAGES])
def test_pages_are_plain_markdown(name: str) -> None:
    """Limits of the program's own reader: no HTML, no extension of the site."""
    text = manual.page(name)
    assert text.startswith("# ")
    outside = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    assert not re.search(r"<[a-z!/]", outside), "HTML"
    assert not re.search(r"^(!!!|\?\?\?|===|\{%)", outside, re.MULTILINE), "an extension"


def test_a_page_without_its_pictures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The wheel has no screenshots; pages must not show gaps for them."""
    assert "](../screenshots/" in manual.page("window")
    shutil.copytree(DOCS, tmp_path / "docs")
    monkeypatch.setattr(manual, "FOLDER", tmp_path / "docs")
    text = manual.page("window")
    assert "screenshots" not in text
    assert "## Denoising" in text


# Commands ------------------------------------------------------------------------------


def test_examples_with_volumes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run them one after the other, on small heads: each finds the files of the others."""
    monkeypatch.chdir(tmp_path)
    lines = commands("volumes.md")
    assert len(lines) >= 9
    for line in lines:
        small = line.replace("--size 181", "--size 16")
        assert main(shlex.split(small, comments=True)[1:]) == 0
    written = (".nii.gz", ".pngs")
    names = {name for line in lines for name in line.split() if name.endswith(written)}
    assert {path.name for path in tmp_path.iterdir()} == names | {"OUT-T2.nii.gz", "OUT-PD.nii.gz"}
    assert "bias" in capsys.readouterr().out


@pytest.mark.parametrize(
    "line", [line for line in commands("command-line.md") if " apply " in line]
)
def test_examples_of_apply(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = shlex.split(line, comments=True)[1:]
    if "--help" in arguments:
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 0
        return
    for name, source in (("in.png", "coffee.png"), ("in.bmp", "camera.bmp")):
        pixels = read_image(ROOT / "resources" / source).pixels[100:200, 100:220]
        write_image(Image.from_array(pixels), tmp_path / name)
    monkeypatch.chdir(tmp_path)
    for name in ("scan.tif", "slide.tif"):
        write_image(read_image("in.png"), name)
    monkeypatch.setattr(memory, "resident", lambda: 300 << 20)  # and not that of all tests
    if "--recipe" in arguments:
        recipe = block("command-line.md", "recipe")
        Path("denoise.recipe.json").write_text(recipe, encoding="utf-8")
    assert main(arguments) == 0
    _, output, *_ = (name for name in arguments if Path(name).suffix in {".png", ".bmp", ".tif"})
    assert (tmp_path / output).stat().st_size > 0


def test_tasks_can_be_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All commands and the Python of the page, one after the other, in one folder."""
    monkeypatch.chdir(tmp_path)
    noisy = read_image(ROOT / "resources" / "camera-gaussian.png").pixels[100:260, 100:260]
    write_image(Image.from_array(noisy), "camera-gaussian.png")
    shutil.copy(ROOT / "resources" / "camera.bmp", tmp_path)
    small = read_image("camera.bmp").pixels[200:264, 200:296]
    write_image(Image.from_array(small), "in.png")
    Path("scans").mkdir()
    for number in range(3):
        shutil.copy("in.png", f"scans/{number}.png")
    planes = np.stack([small, small[::-1]])[None, :, None]  # T, C, Z
    tifffile.imwrite("cells.ome.tif", planes, metadata={"axes": "TCZYX"})
    tifffile.imwrite("stack.tif", np.stack([small] * 3), photometric="minisblack")
    monkeypatch.setattr(memory, "resident", lambda: 300 << 20)  # and not that of all tests
    lines = commands("tasks.md")
    for line in lines:
        assert main(shlex.split(line.replace("--size 48", "--size 24"))[1:]) == 0, line
    assert len(lines) == 14
    for written in (word for line in lines for word in line.split() if Path(word).suffix):
        assert Path(written).exists(), written
    assert len([*Path("clean").glob("*.png")]) == 3
    (code,) = re.findall(r"```python\n(.*?)```", text_of("tasks.md"), re.DOTALL)
    capsys.readouterr()
    exec(compile(code, "tasks.md", "exec"), {})
    session().close()  # its threads would wait for the next call
    assert abs(float(capsys.readouterr().out)) < 0.1, "the sample has white noise"


@pytest.mark.parametrize("words", re.findall(r"\| \*“(.*?)”\*", text_of("questions.md")))
def test_messages_of_the_questions_exist(words: str) -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    assert words.replace("4", "{number}") in sources or words in sources


@pytest.mark.parametrize("line", [line for line in commands("cluster.md") if " apply " in line])
def test_examples_of_apply_on_clusters_are_understood(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Up to the file or the scheduler, which are not there: tests of `lazy` have both."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("kernelscope.big.batch.cluster._CONNECT_SECONDS", 0.5)
    nobody = "tcp://127.0.0.1:9"
    assert main(shlex.split(line.replace("tcp://node1:8786", nobody))[1:]) == 1
    missing = nobody if "--scheduler" in line else "scan.tif"
    assert missing in capsys.readouterr().err


def test_no_example_of_apply_is_left_out() -> None:
    tried = {"command-line.md", "volumes.md", "cluster.md", "tasks.md"}
    for page in PAGES:
        assert page in tried or not any(" apply " in line for line in commands(page)), page


# The worked example --------------------------------------------------------------------

EXAMPLE = "add-a-filter.md"


def copy_of_project(copy: Path) -> Path:
    for name in ("app", "tests", "kernels", "resources"):
        shutil.copytree(ROOT / name, copy / name)  # with bytecode, which takes seconds to make
    shutil.copy(ROOT / "pyproject.toml", copy)
    (copy / "build/tests").mkdir(parents=True)
    with contextlib.suppress(OSError):  # Windows may forbid links; it is compiled again then
        for each in builds.kept("").iterdir():
            if each.name != "bytecode":  # named by content: compiled headers and kernels
                (copy / "build/tests" / each.name).symlink_to(each)
    return copy


@pytest.fixture(scope="module")
def with_example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project that has the filter of the page."""
    copy = copy_of_project(tmp_path_factory.mktemp("project"))
    paths = re.findall(r"<!-- example: (.*?) -->", text_of(EXAMPLE))
    assert [Path(path).suffix for path in paths] == [".py", ".cu", ".py"]
    for path in paths:
        assert not (copy / path).exists()
        (copy / path).write_text(block(EXAMPLE, f"example: {path}"), encoding="utf-8")
    return copy


def run_in(folder: Path, *arguments: str) -> str:
    """Run Python in a copy of the project, not as part of this run; return its output."""
    others = "PYTEST_", "NUMBA_CACHE_DIR"  # its code is kept under the name of its own sources
    mine = {name: value for name, value in os.environ.items() if not name.startswith(others)}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=mine
        | {
            "PYTHONPATH": os.pathsep.join(
                [str(folder / "app"), str(folder), os.environ.get("PYTHONPATH", "")]
            ).rstrip(os.pathsep),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def passed(folder: Path, *modules: str) -> Counter[str]:
    """Run the tests of the example in these modules; return how many of each passed."""
    tests = ["-m", "pytest", "-q", "-rp", "-p", "no:cacheprovider", "-k", "spread"]
    return Counter(re.findall(r"^PASSED (.*?)::", run_in(folder, *tests, *modules), re.MULTILINE))


def test_example_filter_passes_the_contract(with_example: Path) -> None:
    """NVRTC compiles its kernel with every choice of macros, and g++ the very source.

    There is a launch for every level that it offers; its arithmetic needs no card.
    """
    pictures, plain, kernels, emulated = (
        f"tests/{name}.py"
        for name in (
            *("contract/test_pictures", "filters/test_plain_loops"),
            *("backends/test_kernels", "contract/test_emulated"),
        )
    )
    found = passed(with_example, pictures, plain, kernels, emulated)
    assert found[pictures] == 3
    assert found[plain] > 0
    assert found[kernels] == 8
    assert found[emulated] == (8 if HostCompiler.find() is not None else 0)
    assert len(block(EXAMPLE, "example: kernels/spread.cu").splitlines()) <= 50


def test_example_is_formatted(with_example: Path) -> None:
    paths = re.findall(r"<!-- example: (.*?\.py) -->", text_of(EXAMPLE))
    run_in(with_example, "-m", "ruff", "check", *paths)
    run_in(with_example, "-m", "ruff", "format", "--check", *paths)


@pytest.mark.gpu
def test_example_kernel_equals_its_oracle_on_a_card(with_example: Path) -> None:
    module = "tests/gpu/test_gpu_contract.py"
    assert passed(with_example, module)[module] > 40


def test_example_filter_is_offered_everywhere(with_example: Path) -> None:
    """No other file has to know it: command line, catalogue and manual list it."""
    code = (
        "from kernelscope.cli.main import main; main(['list', '--json']); print('=====')\n"
        "from kernelscope.teach import manual; print(manual.page('filters')); print('=====')\n"
        "main(['apply', 'spread', '--help'])"
    )
    listed, page, options = run_in(with_example, "-c", code).split("=====\n")
    (entry,) = (entry for entry in json.loads(listed)["filters"] if entry["id"] == "spread")
    assert entry["levels"]["gpu"] == ["single-block", "global", "shared", "texture"]
    assert "### spread\n" in page
    assert "--size" in options


# The worked example of a dock -----------------------------------------------------------

DOCK = "add-a-dock.md"


def test_example_dock_follows_the_output(tmp_path: Path) -> None:
    """Its files are written, its lines inserted before those that the page names."""
    copy = copy_of_project(tmp_path)
    paths = re.findall(r"<!-- example: (.*?) -->", text_of(DOCK))
    for path in paths:
        (copy / path).write_text(block(DOCK, f"example: {path}"), encoding="utf-8")
    marks = re.findall(r"<!-- (before (.*?): (\S+)) -->", text_of(DOCK))
    assert len(marks) == 6
    for mark, line, path in marks:
        place = r"\s*".join(map(re.escape, line.replace("(", " ( ").split()))
        text = (copy / path).read_text(encoding="utf-8")
        (found,) = re.finditer(rf"^[ ]*{place}", text, re.MULTILINE)
        text = text[: found.start()] + block(DOCK, mark) + text[found.start() :]
        (copy / path).write_text(text, encoding="utf-8")
    changed = [*paths, *{path for _, _, path in marks}]
    run_in(copy, "-m", "ruff", "check", *changed)
    run_in(copy, "-m", "ruff", "format", "--check", *changed)
    test = next(path for path in paths if path.startswith("tests"))
    assert "1 passed" in run_in(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", test)
