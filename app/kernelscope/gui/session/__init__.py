"""The state of the window, without Qt."""
