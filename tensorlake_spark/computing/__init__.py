"""Operations on stored tensors: an answer is folded from blocks, few of which are in memory. Begin with `fold`.

A `fold` is what an operation gives: map, combine, finish; ``operations`` has them. `operand` is what is folded,
`composing` a key of a key. `row_blocks` are made of rows, `thread_runner` folds them in threads, `regions` are read in order.
`mapping` is elementwise, `result_stream` a large answer by regions, `writing_results` makes a tensor of a result. `methods` has all of them, for `tensor_view`
and the lake's reference. May import ``writing`` and what lies below it.
"""
