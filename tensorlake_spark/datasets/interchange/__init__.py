"""Datasets for other libraries and for the eye. Begin with `interchange_methods`.

`hugging_face` has the features of Hugging Face's library, `notebook` the table that a notebook shows. May import
``datasets.samples``, ``datasets.types`` and ``errors``.
"""
