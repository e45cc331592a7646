"""Samples in rows of tables.

Begin with `link_table` or `hf_parquet`.
May import the other modules of ``datasets.sources``, and what they may.

`hf_features` reads what Hugging Face says of columns, `arrow_columns` what Arrow's types say.
"""
