"""What the sparse layouts share: `elements` gathered from many rows, `element_runs`, `blocks`, `offsets` in them.

May import ``layouts.base``, ``layouts.verification`` and ``layouts.coding``, no layout. `compressed_axes` is what CSR
and CSC have in common. Begin with `elements`.
"""

from typing import TYPE_CHECKING

from tensorlake_spark import moved

if not TYPE_CHECKING:  # for mypy no name is there but those of the folder
    __getattr__ = moved.names_of(__name__)
