"""Datasets of samples: a Delta table with a row per sample. Begin with `dataset`, which opens one.

A `column` of it is indexed like an array. ``types`` says what a column may hold, ``samples`` stores and reads them,
``changes`` updates and deletes them, ``apart`` is for what is too large for a row, ``links`` fetches what lies
elsewhere. ``maintenance`` is for its later years: versions, fewer files, check, purge; ``derived`` for copies, other
layouts and saved views. ``interchange`` translates to other libraries, ``sources`` reads what people have as files,
`dataset_extensions` opens loaders and queries. May import ``lake``, ``columns`` and what lies below them.
"""
