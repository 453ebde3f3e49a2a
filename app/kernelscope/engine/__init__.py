"""Execution of filters: requests, recipes, cancelling, timing, one worker thread."""
