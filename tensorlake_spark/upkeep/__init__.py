"""The same tensors in better files.

Begin with `optimize`.
May import ``writing`` and what lies below it.

Fewer files (`optimize`), another order (`zorder`), another layout (`convert`). What nobody needs any more goes:
`vacuum`, `stale_uploads`.
"""

from typing import TYPE_CHECKING

from tensorlake_spark import moved

if not TYPE_CHECKING:  # for mypy no name is there but those of the folder
    __getattr__ = moved.names_of(__name__)
