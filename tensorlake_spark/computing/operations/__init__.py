"""The operations on blocks, each of them a fold and never a loop over files.

Begin with `block_reductions`.
May import `fold` and `operand` of ``computing``, and below.

`block_reductions` reduces dense tensors, and `element_reductions` sparse ones, in `cell_tables`, with `cell_loops` that
numba compiles. `reduction_kernels` are the reductions themselves, in the dtypes of `state_dtypes`, by `value_sums`.
`index_searches` finds positions of extremes and of non-zeros, `first_indices` those where a condition holds.
``products`` multiply. `tiles` are partial results of a dense answer; `accumulation` reduces dense blocks straight into
them, with `dense_loops` that numba compiles.
"""
