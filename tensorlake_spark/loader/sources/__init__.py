"""The sources of samples: a dataset, a tensor of a lake, or several tensors.

Begin with `loader_source`, their interface.
May import ``decoding``, ``transforms``, ``caching``, ``datasets`` and ``lake``.

`dataset_samples` reads columns of a dataset, with the blocks of `block_cuts`. From an object store it reads through
`remote_ranges`, in `fetched_parts` if a batch needs more than these hold. `sample_marks` are of what lies in a cache,
and `tile_facts` of large samples that processes read.
`tensor_samples` are slices of a tensor, which `tensor_blocks` reads.
"""
