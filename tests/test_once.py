"""First uses on several threads at once: of `once`, and of every reader, writer and kernel."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import zarr

from kernelscope.base.once import ignore_warnings, once
from kernelscope.files import READABLE, WRITABLE, write_image, write_pages
from kernelscope.files.volumes import READABLE_VOLUMES, WRITABLE_VOLUMES, write_volume
from kernelscope.images.image import Image
from kernelscope.images.volume import Volume
from tests.files.test_volumes_dicom import pixels
from tests.files.test_volumes_dicom import write as write_slice
from tests.patience import PATIENCE

THREADS = 4


def test_a_function_runs_once_while_other_threads_wait() -> None:
    """The second thread asks while the first one is in the function."""
    entered, go_on, results = threading.Event(), threading.Event(), list[int]()
    calls = []

    @once
    def slow() -> int:
        calls.append(0)
        entered.set()
        assert go_on.wait(PATIENCE)
        return len(calls)

    threads = [threading.Thread(target=lambda: results.append(slow())) for _ in range(2)]
    threads[0].start()
    assert entered.wait(PATIENCE)
    threads[1].start()
    threads[1].join(0.05)  # it waits for the first one
    go_on.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert results == [1, 1]


def test_a_function_that_failed_is_tried_again_and_arguments_count() -> None:
    calls = list[int]()

    @once
    def picky(number: int) -> int:
        calls.append(number)
        if len(calls) == 1:
            raise ValueError(number)
        return number

    with pytest.raises(ValueError, match="1"):
        picky(1)
    assert [picky(1), picky(1), picky(2)] == [1, 1, 2]
    assert calls == [1, 1, 2]


def test_a_filter_of_warnings_is_never_taken_out_again() -> None:
    """Between taking it out and putting it first, another thread would see the warning."""
    with warnings.catch_warnings():
        ignore_warnings(r"nobody\.")
        warnings.filterwarnings("error", module="somebody")
        ignore_warnings(r"nobody\.")
        assert warnings.filters[0][0] == "error"
        assert [str(each[3]) for each in warnings.filters].count(str(re.compile(r"nobody\."))) == 1


CHILD = """
import hashlib, json, os, sys, threading
import numpy as np
from pathlib import Path
import kernelscope
from kernelscope.files import read_image, read_pages, write_image, write_pages
from kernelscope.files.volumes import is_volume, read_volume, write_volume, series_of
from kernelscope.images.image import Image
from kernelscope.images.volume import Volume
from kernelscope.big.lazy.opening import open_source
from kernelscope.schema.crop import Box

THREADS, cases = int(sys.argv[1]), json.loads(sys.stdin.read())
picture = Image.from_array(np.arange(768, dtype=np.uint8).reshape(16, 16, 3))
volume = Volume.from_array(np.arange(512, dtype=np.uint8).reshape(8, 8, 8), "x")

def blocks(path):
    source = open_source(Path(path))
    try:
        return source.read(Box((0,) * len(source.shape[:2]) + (0,), source.shape))
    finally:
        source.close()

def filtered(path):
    return kernelscope.median(read_image(path).pixels[:, :, 0], size=5)

def kind(path):
    return np.array([is_volume(path), bool(series_of(Path(path)))])

def written(write, content, path, number):
    target = Path(path).with_name(f"{number}-{Path(path).name}")
    write(content, target, lossy=True)
    if Path(path).name.endswith(".ome.tif"):
        return read_image(target).pixels  # each file has a name of its own within
    files = sorted(f for f in [target, *target.rglob("*")] if f.is_file())
    return np.frombuffer(b"".join(file.read_bytes() for file in files), np.uint8)

WORK = {
    "image": lambda path, number: read_image(path).pixels,
    "pages": lambda path, number: np.hstack([each.pixels.ravel() for each in read_pages(path)]),
    "volume": lambda path, number: read_volume(path).voxels,
    "kind": lambda path, number: kind(path),
    "blocks": lambda path, number: blocks(path),
    "filtered": lambda path, number: filtered(path),
    "write image": lambda path, number: written(write_image, picture, path, number),
    "write volume": lambda path, number: written(write_volume, volume, path, number),
}

def together(action, path):
    start, found = threading.Barrier(THREADS), []
    def work(number):
        start.wait()
        try:
            made = WORK[action](path, number)
            found.append(hashlib.sha256(np.ascontiguousarray(made)).hexdigest())
        except BaseException as error:
            found.append(f"{type(error).__name__}: {error}")
    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for each in threads: each.start()
    for each in threads: each.join()
    return sorted(set(found))

for action, path in cases:
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        sys.setswitchinterval(1e-4)
        os.write(1, (json.dumps([action, path, together(action, path)]) + chr(10)).encode())
        os._exit(0)
    os.waitpid(child, 0)
"""
"""Does each of the cases that stdin names in a process of its own, in which nothing was used."""


def _cases(folder: Path) -> list[tuple[str, str]]:
    """Write a file of every format; return what to do with each."""
    grey = np.arange(256, dtype=np.uint8).reshape(16, 16)
    colour = np.stack([grey, grey.T, 255 - grey], axis=2)
    cases = list[tuple[str, Path]]()
    for suffix in dict.fromkeys(suffix for kind in WRITABLE for suffix in kind.suffixes[:1]):
        image = grey if suffix == ".pgm" else colour
        write_image(Image.from_array(image), folder / f"a{suffix}")
        cases += [("image", folder / f"a{suffix}"), ("write image", folder / f"new{suffix}")]
    PIL.Image.fromarray(colour).quantize(16).save(folder / "a.gif")
    bilevel = PIL.Image.fromarray(grey > 99)
    bilevel.save(folder / "fax.tif", compression="group4")  # decoded by a kernel of ours
    PIL.Image.fromarray(colour).convert("LAB").save(folder / "lab.tif")
    PIL.Image.fromarray(colour).save(folder / "lzw.tif", compression="tiff_lzw")
    PIL.Image.fromarray(colour).convert("CMYK").save(folder / "cmyk.jpg")
    write_pages([Image.from_array(colour), Image.from_array(grey)], folder / "pages.tif")
    write_slice(
        folder / "colour.dcm",
        colour,
        0,
        PhotometricInterpretation="RGB",
        SamplesPerPixel=3,
        PlanarConfiguration=0,
    )
    names = ("a.gif", "fax.tif", "lab.tif", "lzw.tif", "cmyk.jpg", "colour.dcm")
    cases += [("image", folder / name) for name in names]
    cases += [("pages", folder / "pages.tif"), ("filtered", folder / "a.png")]
    voxels = np.arange(512, dtype=np.uint8).reshape(8, 8, 8)
    for kind in WRITABLE_VOLUMES:
        place = folder / f"scan{kind.suffixes[0]}"
        write_volume(Volume.from_array(voxels, "scan"), place)
        cases += [("volume", place), ("write volume", folder / f"new{kind.suffixes[0]}")]
    (folder / "series").mkdir()
    for index in range(3):
        write_slice(folder / f"series/IM{index}", pixels(index), index)
    series = folder / "series"
    cases += [("volume", series), ("kind", series / "IM0"), ("volume", series / "IM1")]
    made = zarr.create_array(folder / "a.zarr/0", data=voxels, chunks=(4, 4, 4))
    del made
    attributes = {
        "version": "0.5",
        "multiscales": [
            {
                "axes": [{"name": name, "type": "space"} for name in "zyx"],
                "datasets": [
                    {
                        "path": "0",
                        "coordinateTransformations": [{"type": "scale", "scale": [1.0, 1.0, 1.0]}],
                    }
                ],
            }
        ],
    }
    meta = {"zarr_format": 3, "node_type": "group", "attributes": {"ome": attributes}}
    (folder / "a.zarr/zarr.json").write_text(json.dumps(meta), encoding="utf-8")
    cases += [("blocks", folder / "a.zarr"), ("blocks", folder / "scan.tif")]
    return [(action, str(path)) for action, path in cases]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_first_use_on_several_threads(tmp_path: Path) -> None:
    """What one thread can do in a fresh process, several can do at once, with the same result."""
    cases = _cases(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(THREADS)],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        timeout=20 * PATIENCE,
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(action, path) for action, path, _ in found] == cases, done.stderr[-2000:]
    odd = [
        (action, Path(path).name, results)
        for action, path, results in found
        if len(results) != 1 or len(results[0]) != 64
    ]
    assert odd == []
    assert done.stderr == ""  # of no warning either
    tried = [path for action, path in cases if not action.startswith("write")]
    for kind in (*READABLE, *READABLE_VOLUMES):
        assert any(path.endswith(kind.suffixes) for path in tried), kind
