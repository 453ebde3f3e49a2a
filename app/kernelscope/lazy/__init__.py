"""Sources that are larger than memory: read, filtered and written in blocks.

``source``, ``opened``, ``tiff_source``    parts of a file, read when they are needed
``filtered``                               steps, as sources whose parts are computed
``blocks``                                 the parts that fit into a given memory
``streaming``, ``tiff_sink``               part by part into a new file

A result has the bytes that it has when the source is filtered as a whole.
"""
