"""Values <-> bytes; knows no tensor and no row. Begin with `codec`.

Dense blocks: `codec` applies one, `codec_choice` finds one. Sparse layouts: `buffers` and `integer_sequences`.
`decompression` bounds the memory. May import ``errors`` only.
"""
