"""Samples of a dataset: rows of a Delta table with columns of the user's own.

Begin with `stored_samples`, which finds and reads them by their `sample_numbers`; `sample_writer` writes data files of
new ones, by `row_sizes` and with `bounds`. `leaf_columns` says which columns of a schema are payload, `sample_values`
reads those where they lie in one of `sample_files`, `column_assembly` puts them together with the rest, and
`scattered_rows` reads single ones again and again; `samples_table` makes the table, `log_entries` are its files as the
log names them, `sample_inspection` holds one against it. May import ``delta.files``, ``delta.log``, ``delta.store``.
"""
