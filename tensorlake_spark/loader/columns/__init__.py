"""From columns of a dataset to arrays of a batch.

Begin with `column_readings`, which chooses a way for each column.
May import ``transforms``, ``decoding``, ``datasets`` and what lies below them.

The ways are `picture_reading`, `stack_reading`, `scalar_reading` and `plain_reading`; `column_reading` is their
interface. `stored_column` is a column as it is stored, `values` are the results, and `batch_buffers` is memory that is
used again.
"""
