"""What is derived from a dataset: other layouts, copies with their lineage, saved views. Begin with `derived_methods`.

`sample_order` says which order is meant, `relayout` lays a dataset out in it. `dataset_copy` makes a new dataset of
samples by `sample_copying`, of `column_plan`, with their `column_digests`; `lineage` is what it keeps of its sources, and `lineage_check` holds
it against them. `saved_views` keeps the samples of a query by name.
May import ``datasets.maintenance`` and what that may import.
"""
