"""Where samples come from: a dataset, tensors of a lake, several of them side by side. Begin with `sample_source`.

`dataset_samples` reads columns of a dataset. May import ``decoding``, ``transforms``, ``caching``, ``datasets``, ``lake``.
"""
