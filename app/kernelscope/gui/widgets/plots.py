"""Settings of PyQtGraph's plots that the program needs everywhere."""

from __future__ import annotations

from PySide6.QtWidgets import QGraphicsScene, QGraphicsView


def look_at_every_item(view: QGraphicsView) -> None:
    """Have the scene of a plot keep no index of its items.

    Qt's index finds a removed item by its bounding rectangle. That of PyQtGraph's axes follows the
    plot beside them without a notice to Qt, so an axis stayed in the index after it was destroyed,
    and the next painting crashed. A plot has a few dozen items: an index would save no time.
    """
    view.scene().setItemIndexMethod(QGraphicsScene.ItemIndexMethod.NoIndex)
