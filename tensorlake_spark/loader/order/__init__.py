"""The order of samples, and the share of each rank: pure functions of a key and a place.

Begin with `epoch_order`.
May import NumPy and ``errors`` only.

`epoch_order` cuts the sequence of an epoch into batches and shares, and `loader_state` is a place in it. The sequence
is a `permutation` of all samples, or a `block_shuffle`: a `sliding_shuffle` of permuted blocks, of which `chunk_cache`
keeps a part. `sampling` draws by weights first. All random numbers come from `counter_random`; `sample_draws` are those
of a sample. `shuffle_quality` measures a shuffle.
"""
