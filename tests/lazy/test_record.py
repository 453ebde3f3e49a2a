"""The record of a file that was filtered in blocks names what a whole run names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tifffile

from kernelscope.cli.main import main


@pytest.mark.parametrize("channel", [{"Name": ["DAPI"]}, {"Name": ["DAPI"], "Color": [65535]}])
def test_channels_are_named_as_by_a_whole_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], channel: dict[str, Any]
) -> None:
    source, target = tmp_path / "in.ome.tif", tmp_path / "out.ome.tif"
    stack = np.zeros((3, 8, 8), np.uint16)
    metadata = {"axes": "ZYX", "Channel": channel}
    tifffile.imwrite(source, stack, ome=True, photometric="minisblack", metadata=metadata)
    records = []
    for options in ([], ["--memory", "64G"]):
        assert main(["apply", "median", str(source), str(target), "--json", *options]) == 0
        records.append(json.loads(capsys.readouterr().out)["record"])
        target.unlink()
    whole, blocks = records
    assert whole == blocks
    assert ("channel colour" in whole["kept"]) == ("Color" in channel)
