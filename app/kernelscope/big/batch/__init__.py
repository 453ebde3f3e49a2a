"""Batches: one recipe on many files, written down as it goes so that it can be resumed.

::

    listing     files and folders  ->  Item: source, target; names never collide
    conductor   reads ahead, filters, writes behind; a bad file is an outcome, not an end
    contents    reads and writes all pictures or volumes of a file
    item        the values of a batch: files, handling, hints, reports, stages, and the pause
    task        a file as JSON for another process, which never writes a target itself
    cluster     the files as tasks for the workers of a Dask cluster
    journal     lines of JSON in the output folder: files that were begun, that are done

Free of Qt and of the command line, which both use it.
"""
