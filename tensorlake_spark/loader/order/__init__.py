"""Which sample comes when, and on which rank: a pure function of a key and a place. Begin with `epoch_order`.

`epoch_order` cuts the sequence of an epoch into batches and shares; `loader_state` is a place in it. The sequence is a
`permutation` of all samples, or a `block_shuffle`, which is a `sliding_shuffle` of permuted blocks; `chunk_cache` keeps
a part of it. `sampling` draws by weights first. `counter_random` is all the chance there is, and `sample_draws` what a
sample has of it; `shuffle_quality` measures what came of it. May import NumPy and ``errors`` only.
"""
