"""The generated pages: every filter and level has one, and its contents are true."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from kernelscope import filters
from kernelscope.engine.request import Request
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema.explanation import weighted
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.levels import SHARED, SINGLE_BLOCK
from kernelscope.schema.samples import Kind
from kernelscope.teach import handbook, manual
from kernelscope.teach.handbook import level_pictures, pictures
from kernelscope.teach.handbook.pages import _levels, _settings, nearest
from tests.pairs import together

SPECS = list(handbook.FILTERS.values())
IDS = [spec.id for spec in SPECS]
SLOW = pytest.mark.slow


def links(name: str) -> list[tuple[str, str]]:
    """Return page and anchor of every link to another page of the handbook."""
    text = handbook.page(name, computed=False)
    return re.findall(r"\]\(([\w-]*)(?:\.md)?(?:#([\w-]+))?\)", text)


def test_every_filter_and_level_has_a_page() -> None:
    assert len(SPECS) == sum(len(filters.discover(kind)) for kind in Kind)
    for device in ("cpu", "gpu"):
        for level in filters.levels(device):
            assert f"level-{device}-{level}" in handbook.LEVELS


@pytest.mark.slow
@together("spec", SPECS)
def test_filters_are_explained(spec: FilterSpec) -> None:
    about = spec.explanation
    assert about.formula
    for text in (about.use, about.avoid):
        assert text.endswith(".")
        assert text not in {other.explanation.use for other in SPECS if other is not spec}
    text = handbook.page(f"filter-{spec.id.replace('_', '-')}", computed=False)
    for expected in (spec.summary, spec.source, about.use, about.avoid):
        assert expected in text


@together("spec", SPECS)
def test_each_parameter_has_its_paragraph(spec: FilterSpec) -> None:
    name = f"filter-{spec.id.replace('_', '-')}"
    text = handbook.page(name, computed=False)
    for parameter in spec.parameters:
        assert manual.anchor_of(parameter.label) in handbook.anchors(name)
        paragraph = text.split(f"### {parameter.label}\n")[1].split("\n#")[0]
        assert parameter.help in paragraph
        assert f"`--{parameter.name.replace('_', '-')}`" in paragraph


@together("name", handbook.GENERATED)
def test_links_lead_to_pages_and_headings(name: str) -> None:
    names = {page for pages in handbook.SECTIONS.values() for page in pages}
    for target, anchor in links(name):
        assert (target or name) in names, target
        assert not anchor or anchor in handbook.anchors(target or name), f"{target}#{anchor}"


@together("name", handbook.GENERATED)
def test_pages_are_plain_markdown_with_one_title(name: str) -> None:
    text = handbook.page(name, computed=False)
    outside = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    assert not re.search(r"<[a-z!/]", outside), "HTML"
    assert re.findall(r"^# (.*)$", outside, re.MULTILINE) == [handbook.title(name)]


@together("device_level", handbook.LEVELS.values())
def test_levels_are_explained_and_drawn(device_level: tuple[str, str]) -> None:
    level = filters.levels(device_level[0])[device_level[1]]
    assert level.why.endswith(".")
    assert level.source.endswith(".")
    drawing = ElementTree.fromstring(pictures.render(f"level/{'/'.join(device_level)}"))
    assert len(list(drawing)) > 10


@pytest.mark.slow
@together("spec", SPECS)
def test_formulas_are_typeset(spec: FilterSpec) -> None:
    drawing = ElementTree.fromstring(pictures.render(f"formula/{spec.id}", "#123456"))
    assert sum(each.tag.endswith("path") for each in drawing.iter()) > 3, "letters are paths"
    assert not any(each.tag.endswith("symbol") for each in drawing.iter()), "Qt draws none"
    lines = spec.explanation.formula.count("\n") + 1
    assert float(drawing.get("height", "inf")) < 110 * lines
    mathml = pictures.as_mathml(spec.explanation.formula)
    assert mathml.count("<math ") == spec.explanation.formula.count("\n") + 1
    assert "\\" not in mathml, "a command that was not understood"


_MANY_PASSES = ("collaborative", "volume_collaborative", "volume_dct")
"""Filters whose code for an example takes 5 to 11 seconds to compile; it has no arithmetic."""


@SLOW
@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(
            spec, id=spec.id, marks=pytest.mark.exhaustive if spec.id in _MANY_PASSES else ()
        )
        for spec in SPECS
    ],
)
def test_the_arithmetic_of_an_example_gives_its_result(spec: FilterSpec) -> None:
    worked = pictures.worked_example(spec.id)
    found = worked.result[worked.middle]
    if worked.working:
        last = re.findall(r"[−\d.]+", worked.working)[-1]
        assert round(float(last.replace("−", "-"))) == round(float(found))
    drawing = pictures.render(f"mask/{spec.id}").decode()
    assert drawing.count(f">{round(float(found))}</text>") >= 1
    ElementTree.fromstring(drawing)


@SLOW
@pytest.mark.parametrize("spec", SPECS, ids=IDS)
def test_a_filter_changes_its_sample(spec: FilterSpec) -> None:
    shown = pictures.effect(spec.id)
    assert shown.before.dtype == shown.after.dtype == np.uint8
    assert shown.before.shape[:2] == shown.after.shape[:2]
    assert not np.array_equal(shown.before, shown.after)
    assert pictures.render(f"effect/{spec.id}").startswith(b"\x89PNG")


def test_drawings_have_the_numbers_of_the_plan() -> None:
    mask = filters.get("mask")
    shared = next(level for level in mask.levels("gpu") if level == SHARED)
    plan = level_pictures.planned(mask, shared)
    assert plan.launch.shared_bytes == 34 * 10
    assert ">shared memory of a block: 340 bytes<" in level_pictures.draw(plan).svg()
    assert ">a sketch, with fewer of them<" in level_pictures.draw(plan).svg()
    alone = level_pictures.planned(mask, SINGLE_BLOCK)
    assert (alone.blocks, alone.threads, alone.pixels_a_thread) == (1, 1024, 4096 * 4096 / 1024)


def test_the_drawing_of_a_request_has_its_filter_picture_and_type() -> None:
    source = Image.from_array(np.zeros((512, 640), np.uint16), "cells")
    request = Request.create(source, "mean", {"size": 5})
    plan = level_pictures.planned_for(request, SHARED)
    width, height = plan.launch.block
    assert plan.launch.shared_bytes == 2 * (width + 4) * (height + 4)
    text = level_pictures.draw(plan).svg()
    assert ">Picture, 640×512, 16 bit<" in text
    assert f">halo 2: {width + 4}×{height + 4} samples for {width}×{height} pixels, " in text
    assert "its window of 25 cells<" in text


@together("spec", [spec for spec in SPECS if spec.levels("gpu")])
def test_every_level_of_a_filter_can_be_drawn(spec: FilterSpec) -> None:
    for level in spec.levels("gpu"):
        drawing = level_pictures.draw(level_pictures.planned(spec, level))
        assert f"Level {level.name} of {spec.name}: " in drawing.svg()


def test_the_drawing_of_a_volume_counts_voxels() -> None:
    volume = Volume.from_array(np.zeros((16, 40, 20), np.float32), "head")
    plan = level_pictures.planned_for(Request.create(Scan((volume,)), "mri_nlm"), SHARED)
    text = level_pictures.draw(plan).svg()
    assert plan.launch.tile == (32, 4, 2)
    assert plan.grid == (1, 10, 8)  # of 32 columns there are only 20
    assert ">Volume, 20×40×16, floats<" in text
    assert "; tile 32×4×2; 0.62 voxels a thread<" in text
    assert "pixel" not in text
    assert "its window of 2,197 cells<" in text


def test_a_weighted_sum_in_words() -> None:
    window, weights = np.array([[1, 2], [3, 4]]), np.array([[1, 2], [2, -1]])
    assert weighted(window, weights) == "1 + 2·(2 + 3) − 4 = 7"
    assert weighted(window, weights, 2) == "(1 + 2·(2 + 3) − 4) / 2 = 7 / 2 = 3.5"


@together("name", ["mean", "weighted_mean", "median", "mask"])
@together("device", ["cpu", "gpu"])
def test_the_times_of_a_page_name_mask_size_machine_and_day(name: str, device: str) -> None:
    """And levels at one size, or by the megapixel: else the sizes would pass for a gain."""
    spec = filters.get(name)
    found = nearest(spec, device)
    settings, levels = _settings(found), _levels(spec, device)
    for figure in found.values():
        assert "mask size 3" in figure.setting or "×" in figure.setting.partition(", border")[0]
        assert f"{figure.setting} ({figure.machine}, {figure.date})" in settings
    sizes = {figure.row.asked for figure in found.values()}
    assert levels.count("/MP |") == (len(found) if len(sizes) > 1 else 0)


def test_levels_timed_at_two_sizes_are_shown_by_the_megapixel() -> None:
    """The page of the weighted mean on a CPU: its levels were never timed together."""
    sizes = {each.row.asked for each in nearest(filters.get("weighted_mean"), "cpu").values()}
    assert sizes == {(1024, 1024), (4096, 4096)}, "else another filter is the example"


def test_a_recorded_setting_names_what_differs_from_the_defaults() -> None:
    """Source N searches the whole image; a page must not pass that off as the default."""
    nlm = filters.get("nlm")
    found = list(nearest(nlm, "cpu").values())
    assert found
    for figure in found:
        whole = figure.row.parameters["search"] == "image"
        assert figure.setting.count("patch size") == 1
        assert ("search in image" in figure.setting) == whole
