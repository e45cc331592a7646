"""Values <-> bytes: `codec` of dense blocks and `codec_choice`; `buffers` and `integer_sequences` of sparse ones.

`decompression` bounds the memory. May import ``errors`` only; knows no tensor and no row. Begin with `codec`.
"""
