"""Stored samples: what users give and take <-> rows of the dataset's table. Begin with `dataset_table`.

Writing: `sample_input` makes batches, `sample_encoding` checks them, `appending` commits them;
`task_samples` is what tasks of a cluster do instead. Reading:
`sample_selection` says which samples, `sample_reading` gives their values, `padding` makes one array of ragged ones.
`where` reads SQL with `comparisons` of `operands`; `sample_plan` says what is read. May import ``datasets.types``,
``delta``, ``indexing`` and ``errors``.
"""
