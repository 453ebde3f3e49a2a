"""State and arithmetic of the window that need no Qt."""
