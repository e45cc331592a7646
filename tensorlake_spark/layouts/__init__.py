"""What the bytes mean: tensor <-> rows, without any file and without Delta. One file for each layout.

`base` is the contract and its laws, `registry` the layouts by name, ``FORMAT.md`` the normative text of the rows;
`verification` holds rows against their checksums. ``coding`` is values <-> bytes, ``sparse`` what the sparse layouts
share, ``testing`` the laws as tests. May import ``rows`` and what lies below it. Begin with `base`, then `ftsf`.
"""

from tensorlake_spark.layouts.base import AnySelection, Layout, grid_of
from tensorlake_spark.layouts.registry import LAYOUTS, layout_of

__all__ = ["LAYOUTS", "AnySelection", "Layout", "grid_of", "layout_of"]
