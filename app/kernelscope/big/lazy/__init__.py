"""Sources that are larger than memory: read, filtered and written in blocks.

``opening``, ``tiff_source``                  parts of a file, read when needed; see `files.lazy`
``filtered``                                 steps, as sources that are computed
``blocks``                                   the parts that fit into a memory
``streaming``, ``tiff_sink``                 part by part into a new file; see also
                                             `files.volumes.zarr_sink`

A result has the bytes that it has when the source is filtered as a whole.
"""
