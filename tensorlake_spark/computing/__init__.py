"""Operations on stored tensors.

Begin with `fold`.
May import ``writing`` and what lies below it.

A result is folded from blocks, and only a few blocks are in memory. A `fold` is an operation in three steps: map,
combine, finish; ``operations`` has all of them. An `operand` is what is folded, and `composing` joins two keys to one.
`row_blocks` makes blocks of rows, `thread_runner` folds them in threads, and `regions` reads a tensor in order.
`mapping` computes element by element, `result_stream` computes a large result region by region, and `writing_results`
writes a result as a tensor. `methods` are the methods of `tensor_view` and of the lake's reference; `stored_reductions`
are those of them that reduce.
"""
