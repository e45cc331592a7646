"""Values <-> bytes; knows no tensor and no row.

Begin with `codec`.
May import ``layouts.kernels``, ``kernel_switch`` and ``errors`` only.

Dense blocks: `chain` has the codecs by name, `block_words` what they see of a block, `codec` applies one,
`block_stacks` undoes one of many small blocks at once, `packed_parts` puts parts of many blocks into a result,
`codec_choice` finds one. `filters` has a module for each step; `pco` is a codec by itself. Sparse layouts: `buffers`
and `integer_sequences`. `decompression` bounds the memory.
"""
