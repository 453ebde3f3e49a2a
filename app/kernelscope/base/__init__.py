"""Used by every room: errors, files that are written whole, memory, compiled code."""
