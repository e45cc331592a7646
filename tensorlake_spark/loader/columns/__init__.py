"""How columns of a dataset become arrays of a batch. Begin with `column_readings`: which way is for which column.

`picture_reading`, `stack_reading`, `scalar_reading` and `plain_reading` are these ways, `column_reading` what is asked of
each. `stored_column` is a column where it lies, `values` what comes out, `batch_buffers` memory that is used again.
May import ``transforms``, ``decoding``, ``datasets`` and what lies below them.
"""
