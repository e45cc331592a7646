"""What the bytes mean: tensor <-> rows, without files and without Delta. Begin with `base`, then `ftsf`.

`base` is the contract of a layout, `registry` the layouts by name: `ftsf` (dense), `coo`, `csr`, `csc`, `csf`, `bsgs`
(sparse). `verification` holds rows against their checksums. ``coding`` is values <-> bytes, ``sparse`` what the sparse
layouts share, ``testing`` the laws as tests. FORMAT.md is the normative text. May import ``rows`` and what lies below.
"""

from tensorlake_spark.layouts.base import AnySelection, Layout, grid_of
from tensorlake_spark.layouts.registry import LAYOUTS, layout_of

__all__ = ["LAYOUTS", "AnySelection", "Layout", "grid_of", "layout_of"]
