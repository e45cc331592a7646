"""Files to tensors on executors: what ``jobs/ingest.py`` calls. Begin with `ingestion`.

``arrays`` makes slabs of images and arrays, ``records`` cells of logs and matrices; `sources` says which files,
`resume` what an earlier run has done. May import the other rooms of ``spark`` but ``session``.
"""

from typing import TYPE_CHECKING

from tensorlake_spark import moved

if not TYPE_CHECKING:  # for mypy no name is there but those of the folder
    __getattr__ = moved.names_of(__name__)
