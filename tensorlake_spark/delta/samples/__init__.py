"""Samples of a dataset: rows of a Delta table with columns of the user's own.

Begin with `stored_samples`, which finds them by `sample_numbers` and reads them; `sample_writer` writes data files of
new ones, by `row_sizes` and with `bounds`. `leaf_columns` says which columns are payload, `sample_values` reads those
where they lie in one of `sample_files`, `scattered_rows` and `payload_places` those that lie far apart,
`column_assembly` puts all together; `samples_table` makes the table, `log_entries` are its files as the log names
them, `sample_inspection` holds one against it. May import ``delta.files``, ``delta.log`` and ``delta.store``.
"""
