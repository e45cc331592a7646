"""Samples of a dataset: rows of a Delta table with columns of the user's own.

Begin with `stored_samples`, which finds and reads them.
May import ``delta.files``, ``delta.log`` and ``delta.store``.

It finds samples by `sample_numbers`; `sample_writer` writes data files of new ones, with `bounds`. `leaf_columns` says
which columns are payload, and where a file has each. `sample_values` reads payloads where they lie in one of
`sample_files`, `column_assembly` puts all together, `scattered` is for rows far from each other; `samples_table` makes
the table, `log_entries` are its files as the log names them, `known_snapshot` goes to other processes,
`sample_inspection` holds the table against its log.
"""
