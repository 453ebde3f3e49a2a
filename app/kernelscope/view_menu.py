"""The menu *View*, but for the panels, which `kernelscope.menus` declares."""

from __future__ import annotations

from kernelscope import commands
from kernelscope.commands import Action, Submenu, plain

_PICTURE = commands.PICTURE

_ARRANGE = (
    Action(
        "sideBySide",
        "&Side by Side",
        "viewer.arrange",
        keys=("Alt+1",),
        tip="Input on the left, output on the right",
        need=commands.SOURCE,
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
        need=commands.SOURCE,
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
        need=commands.SOURCE,
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
        need=commands.SOURCE,
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
        tip="Switch between input and output; in a picture or slice, hold Space",
        need=commands.SOURCE,
        checkable=True,
    ),
)

_COLOURS = tuple(
    Action(
        f"map{name}",
        title,
        "viewer.choose_map",
        group=2,
        need=commands.SOURCE,
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
        need=commands.SOURCE,
        tip=tip,
        argument=unit,
        choice="units",
    )
    for name, title, unit, tip in (
        ("Stored", "&As Stored", "stored", "The values in the file: 0 to 65535 for 16 bits"),
        (
            "Bytes",
            "0 to &255",
            "0 to 255",
            "Black is 0, white 255; in volumes, the brightest voxel",
        ),
        ("Share", "0 to &1", "0 to 1", "Black is 0, white 1; in volumes, the brightest voxel"),
    )
)

_DISPLAY = (
    Action(
        "displayControls",
        "&Level and Colours…",
        "viewer.show_controls",
        keys=("Ctrl+D",),
        tip="Level, window, gamma and colours; the values stay as they are",
        need=commands.SOURCE,
        icon="display",
    ),
    Action(
        "automaticDisplay",
        "&Automatic Contrast",
        "viewer.choose_automatic",
        group=1,
        keys=("Ctrl+L",),
        tip="Black and white at low and high percentiles, unless all is visible anyway",
        need=commands.SOURCE,
    ),
    Action(
        "fullDisplay",
        "&Full Range",
        "viewer.choose_full",
        group=1,
        keys=("Ctrl+Shift+L",),
        tip="Draw 0 black and the largest value of the type white; of volumes, of the voxels",
        need=commands.SOURCE,
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
        need=commands.SOURCE,
        checkable=True,
    ),
    Action(
        "magnifier",
        "&Magnifier",
        "viewer.toggle_magnifier",
        keys=("Ctrl+M",),
        tip="Show the surroundings of the cursor enlarged, in input and output",
        need=commands.SOURCE,
        checkable=True,
    ),
    Submenu("unitsMenu", "&Units of Values", _UNITS, group=1),
)

_REGIONS = (
    *(
        Action(
            f"draw{plain(name).rpartition(' ')[2]}",
            name,
            "measuring.choose_tool",
            keys=(keys,),
            tip=tip,
            need=commands.SOURCE,
            argument=plain(name).rpartition(" ")[2].lower(),
            choice="measuring",
        )
        for name, keys, tip in (
            (
                "&Rectangle",
                "Ctrl+Alt+R",
                "Draw rectangles, move and resize them; Return adds one, Delete removes it",
            ),
            (
                "&Ellipse",
                "Ctrl+Alt+O",
                "Draw ellipses, move and resize them; Return adds one, Delete removes it",
            ),
            (
                "&Polygon",
                "Ctrl+Alt+G",
                "Click corner by corner; Return or a click on the first one completes the polygon",
            ),
            (
                "Profile &Line",
                "Ctrl+Alt+L",
                "Draw lines; the panel Measure plots input and output along the chosen one",
            ),
        )
    ),
    Action(
        "regionsOff",
        "&Move the Pictures",
        "measuring.choose_tool",
        keys=("Ctrl+Alt+M",),
        tip="Move pictures or the crosshair with the left button and the arrow keys again",
        need=commands.SOURCE,
        argument="",
        choice="measuring",
    ),
    Action(
        "removeRegion",
        "&Delete Region",
        "measuring.remove",
        group=1,
        tip="Delete the selected region; in a picture or slice, press Delete",
        need=commands.SOURCE,
    ),
)

_MEMBERS = (
    Action(
        "nextVolume",
        "&Next Volume",
        "files.members.next",
        keys=("Alt+.",),
        tip="Show the next component, or the next volume of the file",
        need=commands.MEMBERS,
    ),
    Action(
        "previousVolume",
        "&Previous Volume",
        "files.members.previous",
        keys=("Alt+,",),
        tip="Show the component, or the volume of the file, before this one",
        need=commands.MEMBERS,
    ),
    Action(
        "playVolumes",
        "P&lay Volumes",
        "files.members.play",
        keys=("Alt+P",),
        tip="Show the volumes one after the other, again and again, or stop that",
        need=commands.MEMBERS,
    ),
)

_LOOKING = (
    Action(
        "space",
        "&3-D View",
        "files.space.open",
        group=3,
        keys=("Ctrl+3",),
        tip="Input and output of volumes from any side: maximum or surface",
        need=commands.VOLUMES,
    ),
    Submenu("membersMenu", "Several Volu&mes", _MEMBERS, group=3),
    Submenu("arrangeMenu", "Arran&ge", _ARRANGE, group=3),
    Submenu("displayMenu", "&Levels and Colours", _DISPLAY, group=3),
    Submenu("probeMenu", "Read Value&s", _PROBE, group=3),
    Submenu("regionsMenu", "Regions of In&terest", _REGIONS, group=3),
)

VIEW = (
    Action(
        "fit",
        "&Fit to Window",
        "canvas.fit",
        keys=("Ctrl+0",),
        tip="Show the whole picture",
    ),
    Action(
        "oneToOne",
        "&Actual Size (1:1)",
        "canvas.one_to_one",
        keys=("Ctrl+1",),
        tip="Show one pixel of the picture as one pixel of the screen",
    ),
    Action("zoomIn", "Zoom &In", "canvas.zoom_in", keys=("Ctrl++", "Ctrl+=")),
    Action("zoomOut", "Zoom O&ut", "canvas.zoom_out", keys=("Ctrl+-",)),
    Action(
        "viewOutput",
        "Show &Output",
        "set_view",
        group=1,
        keys=("F2",),
        tip="The result of the run",
        argument="output",
        choice="view",
        label="Output",
    ),
    Action(
        "viewResidual",
        "Show &Residual",
        "set_view",
        group=1,
        keys=("F3",),
        tip="Output minus input: the changes that the filter made",
        argument="residual",
        choice="view",
        label="Residual",
    ),
    Action(
        "viewDifference",
        "Show &Difference",
        "set_view",
        group=1,
        keys=("F4",),
        tip="Output minus reference: the remaining error",
        argument="difference",
        choice="view",
        label="Difference",
    ),
    Action(
        "noiseMap",
        "Show &Noise Map",
        "show_noise_map",
        group=1,
        keys=("F6",),
        tip="Sigma around each voxel of the input, as MRI NLM estimates it",
        need=commands.VOLUMES,
    ),
    Action(
        "switchKind",
        "Picture or &Volume",
        "pages.switch",
        group=2,
        keys=("Ctrl+Shift+V",),
        tip="Switch between the open volume and the open picture",
        need=commands.OTHER,
    ),
    *_LOOKING,
)
