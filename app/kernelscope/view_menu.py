"""The entries of the menu View that are about looking at pictures; see `kernelscope.menus`."""

from __future__ import annotations

from kernelscope import commands
from kernelscope.commands import Action, Submenu

_PICTURE = commands.PICTURE

_ARRANGE = (
    Action(
        "sideBySide",
        "&Side by Side",
        "viewer.arrange",
        keys=("Alt+1",),
        tip="Input on the left, output on the right",
        need=_PICTURE,
        argument="side by side",
        choice="arrangement",
        icon="side",
    ),
    Action(
        "swipe",
        "S&wipe",
        "viewer.arrange",
        keys=("Alt+2",),
        tip="One picture: input left of a line, output right of it; drag it, or press [ and ]",
        need=_PICTURE,
        argument="swipe",
        choice="arrangement",
        icon="swipe",
    ),
    Action(
        "split",
        "S&plit",
        "viewer.arrange",
        keys=("Alt+3",),
        tip="One picture: input above a line, output below it; drag it, or press [ and ]",
        need=_PICTURE,
        argument="split",
        choice="arrangement",
        icon="split",
    ),
    Action(
        "outputAlone",
        "&Output Alone",
        "viewer.arrange",
        keys=("Alt+4",),
        tip="The output takes all the room; hold Space over it to see the input",
        need=_PICTURE,
        argument="output alone",
        choice="arrangement",
        icon="single",
    ),
    Action(
        "inputInstead",
        "&Input in Place of the Output",
        "viewer.show_input_instead",
        group=1,
        keys=("Ctrl+I",),
        tip="Switch between input and output; in a picture, hold Space",
        need=_PICTURE,
        checkable=True,
    ),
)

_COLOURS = tuple(
    Action(
        f"map{name}",
        title,
        "viewer.choose_map",
        group=2,
        need=_PICTURE,
        argument=title.replace("&", ""),
        choice="map",
    )
    for name, title in (
        ("Grey", "&Grey"),
        ("Inverted", "Grey, &inverted"),
        ("Viridis", "&Viridis"),
        ("Magma", "&Magma"),
        ("Diverging", "&Blue to red"),
    )
)

_UNITS = tuple(
    Action(
        f"units{name}",
        title,
        "viewer.choose_units",
        need=_PICTURE,
        tip=tip,
        argument=unit,
        choice="units",
    )
    for name, title, unit, tip in (
        ("Stored", "&As Stored", "stored", "The values in the file: 0 to 65535 for 16 bits"),
        ("Bytes", "0 to &255", "0 to 255", "Black is 0 and white 255, whatever is stored"),
        ("Share", "0 to &1", "0 to 1", "Black is 0 and white 1, whatever is stored"),
    )
)

_DISPLAY = (
    Action(
        "displayControls",
        "&Level and Colours…",
        "viewer.show_controls",
        keys=("Ctrl+D",),
        tip="Level, window, gamma and colours of the pictures; their values stay as they are",
        need=_PICTURE,
        icon="display",
    ),
    Action(
        "automaticDisplay",
        "&Automatic Contrast",
        "viewer.choose_automatic",
        group=1,
        keys=("Ctrl+L",),
        tip="Black and white at the 0.2nd and 99.8th percentile, unless all is visible anyway",
        need=_PICTURE,
    ),
    Action(
        "fullDisplay",
        "&Full Range",
        "viewer.choose_full",
        group=1,
        keys=("Ctrl+Shift+L",),
        tip="Draw 0 black and the largest value of the type white",
        need=_PICTURE,
    ),
    Action(
        "linkDisplays",
        "&Output as Input",
        "viewer.toggle_link",
        group=1,
        tip="Draw the output with the levels of the input, so that the two can be compared",
        need=_PICTURE,
        checkable=True,
    ),
    *_COLOURS,
)

_PROBE = (
    Action(
        "probe",
        "Values at the &Cursor",
        "viewer.toggle_probe",
        keys=("Ctrl+Shift+I",),
        tip="Write the values beside the cursor; Shift and arrow keys move it pixel by pixel",
        need=_PICTURE,
        checkable=True,
    ),
    Action(
        "magnifier",
        "&Magnifier",
        "viewer.toggle_magnifier",
        keys=("Ctrl+M",),
        tip="Show the surroundings of the cursor enlarged, in both pictures",
        need=_PICTURE,
        checkable=True,
    ),
    Submenu("unitsMenu", "&Units of Values", _UNITS, group=1),
)

LOOKING = (
    Submenu("arrangeMenu", "Arran&ge", _ARRANGE, group=3),
    Submenu("displayMenu", "&Levels and Colours", _DISPLAY, group=3),
    Submenu("probeMenu", "Read Value&s", _PROBE, group=3),
)
