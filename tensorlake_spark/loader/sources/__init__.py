"""Where samples come from: a dataset, tensors of a lake, several of them side by side. Begin with `loader_source`.

`dataset_samples` reads columns of a dataset, with `block_cuts` and, from an object store, by `remote_ranges`,
in `fetched_parts` where a batch needs more than these hold.
`tensor_samples` are slices of a tensor, read by `tensor_blocks`. May import ``decoding``, ``transforms``, ``caching``, ``datasets``, ``lake``.
"""
