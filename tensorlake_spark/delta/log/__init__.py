"""The versions of a table.

Begin with `snapshot`, which reads one.
May import ``delta.store``, never ``delta.files``.

`commit` makes the next version, without deltalake by `direct_commit`; `replaying` finds the files of one, and follows
the commits of others. What is in the log: `actions`, `deletion_vectors`, `properties`, `history`, `tags`. `time_travel`
says which version is meant, `requirements` which tables are read; `creation` makes a table, `data_file` names its
files.
"""

from typing import TYPE_CHECKING

from tensorlake_spark import moved

if not TYPE_CHECKING:  # for mypy no name is there but those of the folder
    __getattr__ = moved.names_of(__name__)
