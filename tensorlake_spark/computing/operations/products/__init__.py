"""Products of a stored tensor with other tensors, each of them a fold.

Begin with `contractions`.
May import ``ops`` and what ``computing.operations`` may.

`array_contractions` multiply with arrays, `sparse_contractions` with sparse tensors, and `stored_contractions` with a
stored tensor, a band of it at a time; `labelled_products` chooses among them by labels of axes, as einsum has them.
`sums_of_products` is what they share.
"""
