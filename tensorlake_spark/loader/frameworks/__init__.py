"""Batches for PyTorch, JAX and TensorFlow, none of which the package needs.

Begin with `torch_samples`.
May import ``order``, ``tensor`` and ``errors``; each imports its framework when it is used.

`torch_samples` is a dataset for PyTorch's DataLoader, for which `worker_passes` counts epochs over processes;
`jax_arrays` and `tensorflow_dataset` are the others. `batch_values` is what they share.
"""
