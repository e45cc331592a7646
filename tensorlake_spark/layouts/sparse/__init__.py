"""What the sparse layouts share.

Begin with `element_keys`: elements gathered from many rows.
May import ``layouts.layout``, ``layouts.verification`` and ``layouts.coding``, no layout.

`element_runs` serves COO, CSR, CSC and CSF, `compressed_axes` CSR and CSC, `element_blocks` and `offsets` BSGS.
"""

from typing import TYPE_CHECKING

from tensorlake_spark import moved

if not TYPE_CHECKING:  # for mypy no name is there but those of the folder
    __getattr__ = moved.names_of(__name__)
