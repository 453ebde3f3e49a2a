"""The pages of the lecture: every number against an independent way to it."""

from __future__ import annotations

import itertools
import statistics
from xml.etree import ElementTree

import numpy as np
import pytest

from kernelscope.base.paths import RESOURCES
from kernelscope.bench import recorded
from kernelscope.bench.report import load
from kernelscope.filters.shared.border_kernels import border_index
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema.borders import Border
from kernelscope.schema.parameters import ChoiceParameter, IntParameter, Parameter
from kernelscope.teach.lecture.page import (
    Demonstration,
    LecturePage,
    LectureSubject,
    MeasuredTime,
    NumberOrigin,
)
from kernelscope.teach.lecture.pages import (
    LADDERS,
    MODES,
    PAGES,
    REPORT,
    outside_reads,
    recorded_runs,
    rim_pixels,
    sectors,
)
from kernelscope.teach.lecture.parts import credits, limits_of, published, quote
from kernelscope.traffic.gpus import residence
from tests.pairs import together

SQUARES = LectureSubject("squares", (np.indices((90, 120)).sum(axis=0) % 7 * 36).astype(np.uint8))
DOT = LectureSubject("dot", np.full((1, 1), 200, np.uint8))


def values_of(shown: Demonstration) -> dict[str, str]:
    return {fact.name: fact.value for fact in shown.facts}


def show(page_id: str, subject: LectureSubject = SQUARES, **values: object) -> dict[str, str]:
    page = PAGES[page_id]
    assert set(values) <= set(page.defaults())
    return values_of(page.show(subject, page.defaults() | values))


def extremes(control: Parameter) -> tuple[object, ...]:
    if isinstance(control, ChoiceParameter):
        return tuple(choice.value for choice in control.choices)
    assert isinstance(control, IntParameter)
    return control.minimum, control.maximum


@together("page", PAGES.values())
def test_a_page_is_short_and_has_controls(page: LecturePage) -> None:
    assert 40 <= len(page.text.split()) <= 120
    assert 1 <= len(page.controls) <= 3
    for control in page.controls:
        assert control.validate(control.default) == control.default
        assert control.help


@pytest.mark.slow
@together("page", PAGES.values())
@together("subject", [SQUARES, DOT])
def test_every_setting_has_a_drawing_and_numbers(
    page: LecturePage, subject: LectureSubject
) -> None:
    for control in page.controls:
        for value in extremes(control):
            shown = page.show(subject, page.defaults() | {control.name: value})
            drawing = ElementTree.fromstring(shown.drawing.svg())
            assert drawing.tag.endswith("svg")
            assert shown.drawing.width <= 700, "letters would be smaller than on other pages"
            assert shown.facts
            assert len({fact.name for fact in shown.facts}) == len(shown.facts)


@together("page", PAGES.values())
def test_figures_of_sources_have_their_author(page: LecturePage) -> None:
    figures = page.figures()
    assert len(figures) <= 10, "no wall has room for more"
    letters = {line.partition(":")[0] for line in credits(figures)}
    assert letters == {figure.source for figure in figures}
    for figure in figures:
        assert figure.amount() in quote(figure)
        assert "gpu" not in quote(figure)


@pytest.mark.slow
def test_runs_of_the_session_are_on_the_pages_of_their_filter() -> None:
    run = MeasuredTime("mean", "Mean 3×3, GPU shared", "0.0123 ms")
    subject = LectureSubject("squares", SQUARES.pixels, (run,))
    for page in PAGES.values():
        facts = page.facts(page.show(subject, page.defaults()), subject)
        here = [fact.value for fact in facts if fact.origin is NumberOrigin.HERE]
        assert here == (["0.0123 ms"] if "mean" in page.filters else [])
    assert any("mean" in page.filters for page in PAGES.values())


# The picture ---------------------------------------------------------------------------


def test_colours_become_grey_bytes_without_alpha() -> None:
    pixels = np.zeros((2, 3, 4), np.uint16)
    pixels[..., :3] = 65535, 0, 0
    subject = LectureSubject.of(Image.from_array(pixels, "red"))
    assert subject.size == "3×2"
    assert (subject.pixels == 85).all()
    floats = LectureSubject.of(Image.from_array(np.full((2, 2), 0.5, np.float32)))
    assert (floats.pixels == 128).all()


def test_a_volume_shows_its_slice_in_the_middle() -> None:
    voxels = np.zeros((3, 4, 5), np.float32)
    voxels[1] = np.linspace(100, 300, 20, dtype=np.float32).reshape(4, 5)
    subject = LectureSubject.of(Scan((Volume.from_array(voxels, "head"),)))
    assert subject.title.endswith("slice 2")
    assert subject.pixels.min() == 0
    assert subject.pixels.max() == 255


def test_a_detail_is_where_the_picture_is_not_flat() -> None:
    pixels = np.zeros((100, 100), np.uint8)
    pixels[70:90, 60:80] = np.indices((20, 20)).sum(axis=0) % 2 * 255
    part, top, left = LectureSubject("", pixels).part(9, 9)
    assert part.std() > 50
    assert (part == pixels[top : top + 9, left : left + 9]).all()


# Numbers -------------------------------------------------------------------------------


def test_sectors_are_those_of_every_byte() -> None:
    for stride, first, size in itertools.product(range(1, 33), range(0, 32, 3), (1, 2, 4)):
        touched = {
            (size * (first + thread * stride) + byte) // 32
            for thread in range(32)
            for byte in range(size)
        }
        assert sectors(stride, first, size) == len(touched), (stride, first, size)


def test_the_page_on_coalescing_counts_bytes() -> None:
    facts = show("coalescing", stride=2, first=0, sample="4")
    assert facts["Sectors of 32 bytes that the warp touches"] == "8"
    assert facts["Used of the bytes delivered"] == "50.0 %"


@together("size", [3, 9])
@together("block", ["8x8", "32x8", "32x32"])
def test_sectors_of_a_block_are_those_of_each_read(size: int, block: str) -> None:
    """One request of a warp at a time; the picture's rows have 120 bytes."""
    columns, rows = map(int, block.split("x"))
    top, left = 45 // rows * rows, 60 // columns * columns
    asked, different = 0, set()
    for first in range(0, columns * rows, 32):
        threads = [(top + t // columns, left + t % columns) for t in range(first, first + 32)]
        for dy, dx in itertools.product(range(-(size // 2), size // 2 + 1), repeat=2):
            sectors = {
                (min(max(y + dy, 0), 89) * 120 + min(max(x + dx, 0), 119)) // 32 for y, x in threads
            }
            asked += len(sectors)
            different |= sectors
    facts = show("caches", size=size, block=block)
    assert facts["Bytes asked for by warps, a pixel"] == f"{32 * asked / columns / rows:.3g}"
    assert facts["Bytes past L1, a pixel"] == f"{32 * len(different) / columns / rows:.3g}"


@together("sample", ["1", "2", "4"])
@together("padding", [0, 1, 4, 8])
def test_turns_of_banks_are_those_of_every_thread(sample: str, padding: int) -> None:
    size, pitch = int(sample), 32 + padding
    for read, step in (("row", 1), ("column", pitch)):
        banks: dict[int, set[int]] = {}
        for thread in range(32):
            word = thread * step * size // 4
            banks.setdefault(word % 32, set()).add(word)
        facts = show("banks", read=read, padding=padding, sample=sample)
        assert facts["Banks that they lie in"] == f"{len(banks)}"
        assert facts["Turns for one read of the warp"] == f"{max(map(len, banks.values()))}"


def test_a_column_of_floats_takes_32_turns_and_padding_removes_them() -> None:
    found = [show("banks", padding=each)["Turns for one read of the warp"] for each in range(3)]
    assert found == ["32", "1", "2"]


@together("warp", ["32x1", "16x2", "8x4"])
def test_warps_diverge_where_their_pixels_are_on_both_sides(warp: str) -> None:
    columns, rows = map(int, warp.split("x"))
    noise = np.random.default_rng(3).integers(0, 256, (30, 50)).astype(np.uint8)
    noise[:, :20] //= 2
    parts = [
        noise[y : y + rows, x : x + columns] > 127
        for y in range(0, 30, rows)
        for x in range(0, 50, columns)
    ]
    apart = sum(each.any() and not each.all() for each in parts)
    facts = show("divergence", LectureSubject("noise", noise), warp=warp, threshold=127)
    assert facts["Warps that diverge"] == f"{apart} of {len(parts)}"
    assert facts["Time, if both sides take as long"] == f"{1 + apart / len(parts):.2f}×"


@together("warp", ["32x1", "16x2", "8x4"])
def test_the_warps_that_diverge_are_marked_on_the_detail(warp: str) -> None:
    columns, rows = map(int, warp.split("x"))
    noise = np.random.default_rng(4).integers(0, 256, (301, 333)).astype(np.uint8)
    noise[:, ::2] //= 2
    noise[:150, :170] = 0  # on one side of the threshold
    subject, page = LectureSubject("noise", noise), PAGES["divergence"]
    _, top, left = subject.part(128, 128)
    top, left = top - top % rows, left - left % columns
    marked = sum(
        0 < np.count_nonzero(noise[y : y + rows, x : x + columns] > 127) < columns * rows
        for y in range(top, top + 128, rows)
        for x in range(left, left + 128, columns)
    )
    drawing = page.show(subject, {"warp": warp, "threshold": 127}).drawing
    assert drawing.svg().count('fill-opacity="0.5"') == marked


@together("size", [3, 9, 15])
@together("block", ["8x8", "32x8", "32x32"])
def test_tiles_have_the_cells_of_the_closed_form(size: int, block: str) -> None:
    columns, rows = map(int, block.split("x"))
    cells = {
        (x + dx, y + dy)
        for x in range(columns)
        for y in range(rows)
        for dx in range(size)
        for dy in range(size)
    }
    facts = show("tiles", size=size, block=block)
    assert facts["Cells of the tile with its halo"] == f"{len(cells):,}"
    a_pixel = len(cells) / (columns * rows)
    assert facts["Cells from global memory, a pixel"] == f"{a_pixel:.3f}"
    assert facts["The same at level global"] == f"{size * size}"


def test_the_least_time_is_that_of_two_bytes_a_pixel() -> None:
    facts = show("memory", size=7, card="RTX 2080 Ti")
    assert facts["Bytes a pixel that must move: read once, write once"] == "2"
    assert (
        facts["Least time for 120×90 pixels on RTX 2080 Ti"]
        == f"{120 * 90 * 2 / 616e9 * 1e6:,.3g} µs"
    )
    uncached = 120 * 90 * (7 * 7 + 1) / 616e9
    assert facts["The same if no cell were read from a cache"] == f"{uncached * 1e6:,.3g} µs"


def test_the_grid_covers_the_picture() -> None:
    facts = show("blocks", block="16x16", card="GTX 480")
    assert facts["Blocks of the grid"] == "8×6 = 48"
    assert facts["With many blocks, multiprocessors that work"] == "15"
    assert facts["Blocks for each of them"] == f"{48 / 15:.1f}"
    alone = show("blocks", DOT, block="16x16", card="GTX 480")
    assert alone["With many blocks, multiprocessors that work"] == "1"


@pytest.mark.parametrize("apart", [1, 5, 32])
def test_constant_memory_sends_one_address_a_turn(apart: int) -> None:
    facts = show("constant", size=7, apart=apart)
    addresses = {thread % apart for thread in range(32)}
    assert facts["Turns of the constant cache for one read of a warp"] == f"{len(addresses)}"
    assert facts["For all weights of the mask"] == f"{len(addresses) * 49:,}"
    assert facts["In constant memory at level constant"] == f"{4 * 49} bytes"
    assert facts["Weights in global memory at level global"] == f"{4 * 49} bytes"


@together("shape", [(1, 1), (4, 9), (12, 7)])
@together("size", [3, 9])
def test_reads_outside_are_counted_cell_by_cell(shape: tuple[int, int], size: int) -> None:
    reach = size // 2
    outside, pixels = 0, set()
    for y, x in itertools.product(*map(range, shape)):
        for dy, dx in itertools.product(range(-reach, reach + 1), repeat=2):
            if not (0 <= y + dy < shape[0] and 0 <= x + dx < shape[1]):
                outside += 1
                pixels.add((y, x))
    assert outside_reads(shape, size) == outside
    assert rim_pixels(shape, size) == len(pixels)


@together("border", MODES)
def test_borders_are_those_of_the_filters(border: Border) -> None:
    line = np.arange(10, 90, 10)
    padded = np.pad(line, 5, mode=MODES[border])
    for place, value in enumerate(padded):
        index = border_index(place - 5, len(line), border.code)
        assert value == (line[index] if index >= 0 else 0)


@together(
    ("card", "threads", "registers", "shared", "blocks", "occupancy", "limit"),
    [
        # After the CUDA Occupancy Calculator.
        ("H100", 256, 32, 0, 8, 1.0, "threads"),
        ("H100", 256, 64, 0, 4, 0.5, "registers"),
        ("H100", 1024, 65, 0, 0, 0.0, "registers"),
        ("H100", 256, 32, 100 << 10, 2, 0.25, "shared memory"),
        ("H100", 64, 16, 0, 32, 1.0, "threads"),
        ("H100", 32, 16, 0, 32, 0.5, "blocks"),
        ("RTX 2080 Ti", 256, 64, 0, 4, 1.0, "threads"),
        ("RTX 2080 Ti", 256, 32, 32 << 10, 2, 0.5, "shared memory"),
        ("GTX 480", 256, 32, 0, 4, 2 / 3, "registers"),
        ("GTX 480", 64, 16, 0, 8, 1 / 3, "blocks"),
        ("GTX 660 Ti", 256, 63, 0, 4, 0.5, "registers"),
        ("GTX 660 Ti", 256, 64, 0, 0, 0.0, "registers"),
    ],
)
def test_occupancy_is_that_of_the_calculator(
    card: str,
    threads: int,
    registers: int,
    shared: int,
    blocks: int,
    occupancy: float,
    limit: str,
) -> None:
    held = residence(limits_of(card), threads, registers, shared)
    assert held.blocks == blocks
    assert held.occupancy == pytest.approx(occupancy)
    assert held.limits[0] == limit


def test_limits_that_are_reached_together_are_all_named() -> None:
    assert residence(limits_of("H100"), 256, 32, 640).limits == ("threads", "registers")
    facts = show("occupancy", block="32x8", registers=32, card="H100")
    assert facts["Reached first"] == "threads and registers"


def test_the_page_on_occupancy_uses_the_plan() -> None:
    facts = show("occupancy", block="32x8", registers=64, card="H100")
    assert facts["Shared memory of a block"] == f"{(32 + 8) * (8 + 8)} bytes"
    assert facts["Occupancy"] == "50.0 %"
    assert facts["Reached first"] == "registers"


def test_shares_of_transfers_are_those_of_the_report() -> None:
    report = load(recorded.FOLDER / REPORT)
    shown = PAGES["transfers"].show(SQUARES, {"size": 5})
    facts = values_of(shown)
    found = 0
    for row in report.rows:
        if (row.filter, row.level, row.parameters.get("size")) == ("median", "shared", "5"):
            runs = [sum(stages) for stages in zip(*row.stages.values(), strict=True)]
            share = statistics.median(row.seconds) / statistics.median(runs)
            side = row.asked[0]
            name = f"Median 5×5, level shared, {side}×{side}: not the kernel"
            assert facts[name] == f"{100 * (1 - share):.1f} %"
            found += 1
    assert found == len(facts) == 4
    measured = recorded.day(report.machine["Date"])
    assert "H100" in report.machine["GPU"]
    assert {fact.note for fact in shown.facts} == {f"H100, {measured}"}


@pytest.mark.slow
@pytest.mark.parametrize("size", [3, 7, 11])
@pytest.mark.parametrize(
    ("page", "control", "label", "side", "gains"),
    [
        ("constant", "size", "Custom mask, {0}×{0}", 4096, ["constant/global"]),
        ("tiles", "size", "Mean, mask size {0}", 2048, ["shared/global"]),
        ("tiles", "size", "Custom mask, {0}×{0}", 4096, ["shared/constant"]),
        ("textures", "size", "Mean, mask size {0}", 2048, ["texture/global"]),
        ("medians", "size", "Median, mask size {0}", 4096, ["selection/global", "tuned/global"]),
        ("nlm", "patch", "Non-local means, patch size {0}", 256, ["shared/global", "tuned/global"]),
    ],
)
def test_pages_have_what_a_level_gained_on_a_card(
    page: str, control: str, label: str, side: int, gains: list[str], size: int
) -> None:
    """Beside a level that has the rest alike: *shared* had the gain of constant memory as well."""
    rows = [row for name in LADDERS for row in load(recorded.FOLDER / name).rows if row.seconds]
    times = {
        row.level: statistics.median(row.seconds)
        for row in rows
        if row.asked == (side, side)
        and row.channels == 1
        and row.label.partition(", search")[0] == label.format(size)
    }
    shown = PAGES[page].show(SQUARES, PAGES[page].defaults() | {control: size})
    kind = label.partition(",")[0].lower()
    found = [
        fact.value
        for fact in shown.facts
        if fact.origin is NumberOrigin.RECORDED and f", {kind} {size}×{size}" in fact.name
    ]
    assert len(found) == (len(gains) if times else 0)
    assert bool(times) == (size < 11)
    for value, gain in zip(found, gains, strict=False):
        level, over = gain.split("/")
        ratio = times[over] / times[level]
        assert float(value.removesuffix("×")) == pytest.approx(ratio, rel=5e-3)


def test_a_border_changes_the_rim_alone() -> None:
    facts = show("borders", border="constant", size=5)
    ramp = 1 + np.indices((90, 120)).sum(axis=0) % 7
    changed = show(
        "borders", LectureSubject("ramp", ramp.astype(np.uint8)), border="constant", size=5
    )
    rim = 90 * 120 - 86 * 116
    assert facts["Pixels whose mask reaches outside"] == f"{rim:,}"
    assert 0 < int(changed["Pixels that differ from border reflect"].replace(",", "")) <= rim
    assert show("borders", border="reflect")["Largest difference, of 255"] == "0"
    assert show("borders", border="valid", size=5)["Size of the result"] == "116×86"


def test_a_median_removes_the_black_and_white_pixels() -> None:
    smooth = np.add.outer(np.arange(120), np.arange(120)) // 4 + 60
    subject = LectureSubject("smooth", smooth.astype(np.uint8))
    facts = show("medians", subject, size=5, density=10)
    share = {name: float(facts[f"Black or white: {name.lower()}"].split()[0]) for name in (
        "The picture", "With noise", "Median")}  # fmt: skip
    assert share["The picture"] == 0
    assert 7 < share["With noise"] < 13
    assert share["Median"] < 0.1
    assert facts["Cells to rank, a pixel"] == "25"


def test_nlm_compares_each_patch_of_the_window() -> None:
    facts = show("nlm", patch=5, search_radius=3)
    window = list(itertools.product(range(-3, 4), repeat=2))
    assert facts["Patches compared, a pixel"] == f"{len(window)}"
    assert facts["Differences, each patch alone"] == f"{len(window) * 25:,}"


@pytest.mark.parametrize("cards", ["1", "2", "4"])
def test_shares_of_cards_have_the_rows_that_their_masks_reach(cards: str) -> None:
    count, height, reach = int(cards), 90, 6
    rows = 0
    for number in range(count):
        mine = range(height * number // count, height * (number + 1) // count)
        rows += len({y for row in mine for y in range(row - reach, row + reach + 1)
                     if 0 <= y < height})  # fmt: skip
    facts = show("several", cards=cards, reach=reach)
    assert facts["Rows that the cards receive together"] == f"{rows}"


@pytest.mark.parametrize(
    ("cards", "value", "where"),
    [
        ("1", "147.6 ms (1.00×)", "H100, 26 Nov 2026"),
        ("2", "64.8 ms (2.28×)", "H100, 26 Nov 2026"),
        ("4", "43.0 ms (3.43×)", "H100, another host with 64 cores, at 922a728"),
    ],
)
def test_runs_on_several_cards_are_those_that_were_recorded_last(
    cards: str, value: str, where: str
) -> None:
    """And those that the manual quotes; the first version of the program took longer."""
    assert set(recorded_runs()) == {1, 2, 4}
    shown = PAGES["several"].show(SQUARES, {"cards": cards, "reach": 6})
    (fact,) = (each for each in shown.facts if each.name.startswith("Whole run"))
    assert (fact.value, fact.note) == (value, where)
    manual = (RESOURCES / "docs" / "gpu-levels.md").read_text("utf-8")
    assert "one, two and four H100s take 148, 65 and 43 ms" in manual


def test_texts_quote_the_figures_of_their_sources() -> None:
    """Numbers in sentences are those of the table."""
    mean = {each.variant: each.low for each in published("M")}
    assert round(mean["texture"] / mean["shared"]) == 3
    assert "three times" in PAGES["textures"].text
    about = {"shape": (4096, 4096), "variant": "shared memory"}
    masks = [each.low for each in published("F", filter="mask", mask_side=3, **about)]
    medians = [
        each.low
        for each in published("F", filter="median", **about)
        if each.parameters == {"size": "3"}
    ]
    assert (round(masks[0]), round(medians[0], 1)) == (35, 6.6)
    assert "35 times" in PAGES["medians"].text
    assert "6.6 times" in PAGES["medians"].text.replace("\n", " ")
    gains = [
        next(value for name, value in show("caches", size=size).items() if "Speed-up" in name)
        for size in (5, 9)
    ]
    assert float(gains[0].removesuffix("×")) < 1 < float(gains[1].removesuffix("×"))
    assert all(f"{size}×{size}" in PAGES["caches"].text for size in (5, 9))
    assert [each.low for each in published("V", quantity="scaling")] == [1.94]
    assert "1.94" in PAGES["several"].text
