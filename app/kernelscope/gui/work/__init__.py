"""Threads of the window: the bridge to the worker, jobs in the background."""
