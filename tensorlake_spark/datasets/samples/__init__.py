"""Stored samples: from the values of users to rows of the dataset's table, and back.

Begin with `dataset_table`.
May import ``datasets.types``, ``delta``, ``indexing`` and ``errors``.

Writing: `sample_input` makes batches, `sample_encoding` checks and encodes them, `appending` commits them; tasks of a
cluster use `task_samples`. Reading: `sample_selection` finds samples, `sample_reading` returns their values, `padding`
makes one array of ragged values. `where` parses conditions, with `comparisons` of `operands`; `sample_plan` is the plan
of a read.
"""
