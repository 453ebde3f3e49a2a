"""Parameters of a filter: values the user sets, how they are checked, read and written.

One class for each kind of value::

    Parameter                 base: name, label, default; its methods are all that a kind defines
        IntParameter          a whole number
            OddParameter      the side of a mask
        FloatParameter        a real number, which may be estimated from the picture
            AxesParameter     one for each axis, too
        NumbersParameter      none, one or several real numbers
        RadiiParameter        radii along x, y and z
            SidesParameter    the sides of a mask of voxels
        ChoiceParameter       one of a few named values
            FootprintParameter    or a table of cells
        MaskParameter         a table of weights

The window makes an editor of each, the command line an option and the documentation a row. They
ask the methods of `Parameter` and do not distinguish kinds; the window alone has a table with the
widget of each one.
"""

from kernelscope.schema.parameters.base import Choice, Parameter
from kernelscope.schema.parameters.choices import Cells, ChoiceParameter, FootprintParameter
from kernelscope.schema.parameters.masks import Mask, MaskParameter, MaskPreset
from kernelscope.schema.parameters.numbers import (
    AxesParameter,
    FloatParameter,
    IntParameter,
    NumbersParameter,
    OddParameter,
    Radii,
    RadiiParameter,
    SidesParameter,
    rounded,
)
from kernelscope.schema.parameters.numerals import read_number

__all__ = [
    "AxesParameter",
    "Cells",
    "Choice",
    "ChoiceParameter",
    "FloatParameter",
    "FootprintParameter",
    "IntParameter",
    "Mask",
    "MaskParameter",
    "MaskPreset",
    "NumbersParameter",
    "OddParameter",
    "Parameter",
    "Radii",
    "RadiiParameter",
    "SidesParameter",
    "read_number",
    "rounded",
]
