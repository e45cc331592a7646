"""Operations on stored tensors: an answer is folded from blocks, few of which are in memory. Begin with `fold`.

A `fold` is what an operation gives: map, combine, finish. `stored` is what is folded, `composing` a key of a key.
`blocks` are made of rows, `runner` folds them in threads, `regions` are read in order. `tiles` are the partial of a
dense answer, `kernels` compute it, `block_reductions` and `element_reductions` fold dense and sparse tensors,
`index_searches` look for positions, `contractions` multiply, `mapping` is elementwise, `writing_results` writes.
`methods` has all of them, for `tensor_view` and the lake's reference. May import ``writing`` and what lies below it.
"""
