"""From data to clients: data sets, what people have as arrays, partitions, and the options that name all of it.

It imports ``arrays``, ``spec``, ``losses``, ``regularisers``, ``objectives`` and, for minima, ``runs``.
A data set or a partition is a file in ``data``.
"""
