"""What is computed of blocks: each operation is a fold, and never a loop over files. Begin with `block_reductions`.

`reduction_kernels` are what a reduction computes, in the dtypes of `state_dtypes`; `block_reductions` fold them over
dense tensors, `element_reductions` over sparse ones, through `cell_tables`. `index_searches` look for positions, `first_indices` for those
where a condition holds,
`contractions` multiply with arrays, `sparse_contractions` with sparse tensors. `tiles` are the partial of a dense answer; `accumulation` reduces dense blocks
straight into it, by `dense_loops`, which numba compiles. May import `fold` and `operand` of ``computing``, and below.
"""
