"""From the lake into training: batches of samples, in an order that is the same on every machine. Begin with `loader`.

``order`` says which samples a batch has, ``sources`` reads them, ``decoding`` and ``transforms`` make arrays of them,
``pipeline`` does all of it in threads within a bound of memory, ``caching`` keeps remote bytes on a local disk,
``frameworks`` hands batches to PyTorch, JAX and TensorFlow. May import ``datasets``, ``lake`` and what lies below them.
"""
