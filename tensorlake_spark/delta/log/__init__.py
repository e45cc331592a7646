"""The versions of a table: `snapshot` reads one, `commit` makes the next; one module for each noun of the protocol.

May import ``delta.store``, never ``delta.files``. `deletion_vectors`, `history`, `tags`, `time_travel` and
`transactions` are what the log says beside its files. Begin with `snapshot`.
"""

from typing import TYPE_CHECKING

from tensorlake_spark import moved

if not TYPE_CHECKING:  # for mypy no name is there but those of the folder
    __getattr__ = moved.names_of(__name__)
