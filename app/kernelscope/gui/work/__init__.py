"""Threads of the window: the tasks of the worker, jobs in the background."""
