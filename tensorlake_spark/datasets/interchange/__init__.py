"""Datasets for other libraries and for the eye.

Begin with `interchange_methods`.
May import ``datasets.samples``, ``datasets.types`` and ``errors``.

`hugging_face` has the features of Hugging Face's library, `hugging_face_files` takes the files of its datasets as they
are, `notebook` has the table that a notebook shows.
"""
