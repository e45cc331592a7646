"""Values <-> bytes: `codec` of dense blocks, `buffers` of integers and values, `sequences`, `decompression`.

May import ``errors`` only; knows no tensor and no row. Begin with `codec`.
"""
