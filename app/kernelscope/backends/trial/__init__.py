"""Edited kernels: compiled and run in a process of their own, so that nothing in them can do harm.

::

    the window        trial (parent)                    trial.child (a process)
    text, request ->  folder: job.json, source.npy  ->  limits itself, compiles, runs
                      <- lines: the stage it is in
    Outcome       <-  folder: report.json, output.npy

The parent ends the process, and all that it started, when a stage takes too long or when the user
cancels. The process says by name how it failed; if it died instead, the parent names the signal.
"""
