"""Operations on stored tensors: an answer is folded from blocks, none of which stays in memory. Begin with `fold`.

`fold` is what an operation gives: map, combine, finish. `stored` is what is folded, `composing` a key of a key.
`blocks` makes blocks of rows, `runner` folds them in threads, `regions` reads box by box in order. Operations are
folds: `tiles` is the partial of a dense answer, `kernels` reduce a dense block, `block_reductions` fold them,
`element_reductions` those of sparse tensors, `index_searches` positions, `contractions` products. `methods` has them
all for `TensorRef` and for `tensor_view`. May import ``writing`` and what lies below it.
"""
