"""Datasets made of others: other orders, copies with their lineage, stored views.

Begin with `derived_methods`.
May import ``datasets.maintenance`` and what that may import.

`sample_order` reads an order, and `relayout` rewrites a dataset in it. `dataset_copy` makes a copy: `column_plan`
chooses its columns, `sample_copying` copies samples, and `column_digests` hashes them. `lineage` keeps the sources of a
copy, and `lineage_check` compares with them. `saved_views` stores views under a name.
"""
