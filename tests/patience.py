"""How long tests wait for what has to happen: far longer than it takes, on a busy machine too."""

PATIENCE = 60.0
"""Seconds. A test that passes ends as soon as it happens; one that fails may take its time."""
