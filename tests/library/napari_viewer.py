"""Two widgets in a running napari, without its drawing, which needs OpenGL; prints the outcome."""

import json
import threading

import magicgui
import numpy as np
from napari.components import ViewerModel
from napari.qt import get_qapp
from napari.utils import _magicgui
from napari.utils.notifications import notification_manager
from qtpy.QtCore import QTimer

from kernelscope.library import napari as widgets

application = get_qapp()
viewer = ViewerModel()
_magicgui.find_viewer_ancestor = lambda widget: viewer
image = np.random.default_rng(0).integers(0, 255, (16, 17), np.uint8)
cells = viewer.add_image(image, name="cells")
pressed = [magicgui.magicgui(getattr(widgets, name)) for name in ("median", "mri_nlm")]
for widget in pressed:
    widget.reset_choices()
threads = []
viewer.layers.events.inserted.connect(lambda event: threads.append(threading.current_thread()))


def press() -> None:
    """Press the button of each widget, as a user does: from the event loop."""
    for widget in pressed:
        widget.image.value = cells
        widget.call_button.changed.emit(True)
    look()


def look() -> None:
    """End the loop once there are a layer and a notification."""
    if len(viewer.layers) > 1 and notification_manager.records:
        application.quit()
    else:
        QTimer.singleShot(20, look)


QTimer.singleShot(0, press)
QTimer.singleShot(60_000, application.quit)
application.exec_()
print(
    json.dumps(
        {
            "layers": [layer.name for layer in viewer.layers],
            "sum": int(viewer.layers[-1].data.sum()),
            "on_main_thread": [each is threading.main_thread() for each in threads],
            "notes": [(type(each).__name__, each.message) for each in notification_manager.records],
        }
    )
)
