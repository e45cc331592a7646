"""Where samples come from: a dataset, tensors of a lake, several of them side by side. Begin with `sample_source`.

`dataset_samples` reads columns of a dataset, with `block_cuts` that say how its files are cut for a shuffle;
`tensor_samples` slices of tensors, by `tensor_blocks`. `remote_ranges` keeps what was read of an object store.
May import ``columns``, ``transforms``, ``caching``, ``decoding``, ``datasets``, ``lake``.
"""
