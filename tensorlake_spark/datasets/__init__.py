"""Datasets of samples: a Delta table with a row per sample.

Begin with `dataset`, which opens one.
May import ``lake``, ``columns`` and below.

A `column` of a dataset is indexed like an array. ``types`` has the types of columns, and ``samples`` writes and reads
rows. ``changes`` updates and deletes samples. ``apart`` stores what lies beside the rows: tiles, apart columns, parts
of videos. ``links`` fetches files that stay elsewhere. ``maintenance`` has versions, fewer files, check and purge;
``derived`` has copies, other orders and stored views. ``interchange`` converts to other libraries, and ``sources``
reads files of other formats. `dataset_extensions` opens loaders and queries.
"""
