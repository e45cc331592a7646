"""Samples of a dataset: rows of a Delta table with columns of the user's own.

Begin with `stored_samples`, which finds and reads them; `sample_writer` writes data files of new ones. `leaf_columns`
says which columns of a schema are payload, `sample_values` reads those where they lie in one of `sample_files`, and
`column_assembly` puts them together with the rest; `samples_table` makes the table, `log_entries` are its files as
the log names them, `sample_inspection` holds one against it. `plain_table` reads tables of others.
May import ``delta.files``, ``delta.log`` and ``delta.store``.
"""
