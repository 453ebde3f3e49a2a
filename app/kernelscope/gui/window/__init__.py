"""The main window and its bars."""
