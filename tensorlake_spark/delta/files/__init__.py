"""Parquet files of rows.

Begin with `scan` (files to rows) and `writer` (rows to files).
May import ``delta.log`` and ``delta.store``.

A read uses `statistics`, `footer` with its `footer_checksum`, and `payload`; `catalog` finds the tensors of a version,
with `catalog_file` where there are many; `digest_file` keeps digests of rows. Whole files anew: `compacting`; a
`runner` says who does such work. `inspection` holds a file against the log, `table_folder` lists the folder.
"""

from typing import TYPE_CHECKING

from tensorlake_spark import moved

if not TYPE_CHECKING:  # for mypy no name is there but those of the folder
    __getattr__ = moved.names_of(__name__)
