"""Parquet files of rows: `writer`, `footer`, `scan`, `payload`; whole files anew: `rewrite`, `merge`, `compaction`.

May import ``delta.log`` and ``delta.store``. `catalog` finds the metadata rows of tensors, `inspection` holds a
file against the log. Begin with `scan` and `writer`.
"""

from typing import TYPE_CHECKING

from tensorlake_spark import moved

if not TYPE_CHECKING:  # for mypy no name is there but those of the folder
    __getattr__ = moved.names_of(__name__)
