"""Plans that are looked at before a run, when nothing has been estimated yet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelscope import filters
from kernelscope.backends.cuda.inspection import plan, plans
from kernelscope.engine.request import Request
from kernelscope.images.image import Image
from kernelscope.images.scan import Scan
from kernelscope.images.volume import Volume
from kernelscope.schema.filter import FilterSpec
from kernelscope.schema.parameters import ChoiceParameter
from kernelscope.schema.samples import Kind


@pytest.mark.parametrize(
    "spec",
    [spec for kind in Kind for spec in filters.discover(kind).values() if spec.levels("gpu")],
    ids=lambda spec: spec.id,
)
def test_every_choice_can_be_looked_at_before_a_run(spec: FilterSpec) -> None:
    """The window's *View kernel* has a request only, without the estimates of a run."""
    source: Image | Scan = Image.from_array(np.zeros((40, 50, 3), np.uint8))
    if spec.kind is Kind.VOLUME:
        source = Scan((Volume.from_array(np.ones((3, 6, 5), np.float32)),) * 2)
    choices = [
        (parameter.name, choice.value)
        for parameter in spec.parameters
        if isinstance(parameter, ChoiceParameter)
        for choice in parameter.choices
    ]
    for name, value in choices or [("", "")]:
        values: dict[str, Any] = {name: value} if name else {}
        if value == "given":
            values["sigma"] = (3.0,)
        request = Request.create(source, spec.id, values)
        for level in spec.levels("gpu"):
            found = plans(request, level)
            kernels = [each.launch.kernel for each in found]
            assert plan(request, level).launch.kernel in kernels, (name, value, level.id)
            assert all(min(each.grid) > 0 for each in found)
