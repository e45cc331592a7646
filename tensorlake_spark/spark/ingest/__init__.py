"""Files to tensors on executors: what ``jobs/ingest.py`` calls.

Begin with `ingestion`.
May import the other rooms of ``spark`` but ``session``.

`ingest_options` are what it is told. ``arrays`` makes slabs, ``records`` cells, ``samples`` datasets. `sources` are the
files, read by `source_files`, `text_lines` and `npy`; `pieces` and `numbered_batches` are how the work is cut, `resume`
what an earlier run has done, `limits` what a file may claim, `outcome` what came of it.
"""

from typing import TYPE_CHECKING

from tensorlake_spark import moved

if not TYPE_CHECKING:  # for mypy no name is there but those of the folder
    __getattr__ = moved.names_of(__name__)
