"""Time limits of tests that wait: far longer than needed, also on a busy machine."""

PATIENCE = 60.0
"""Seconds. A test that passes ends as soon as it happens; one that fails may take its time."""
