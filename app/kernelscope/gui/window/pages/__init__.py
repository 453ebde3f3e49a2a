"""The middle of the window: one page for pictures, one for volumes."""
