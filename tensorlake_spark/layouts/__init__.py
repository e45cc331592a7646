"""What the bytes mean: tensor <-> rows, without files and without Delta.

Begin with `layout`, then `ftsf`.
May import ``rows`` and what lies below.

`layout` is the contract of a layout, `layout_registry` the layouts by name: `ftsf` and `window` (dense), `coo`, `csr`,
`csc`, `csf`, `bsgs` (sparse). `verification` holds rows against their checksums, `dense_rows` decodes those of dense
blocks, `result_memory` is where large results lie. ``coding`` is values <-> bytes, ``quantization`` floats in fewer
bits, ``sparse`` what the sparse layouts share, ``timelines`` samples that slide, ``kernels`` compiled loops,
``testing`` the laws as tests. FORMAT.md is the normative text.
"""

from tensorlake_spark.indexing import AnySelection
from tensorlake_spark.layouts.layout import Layout, grid_of
from tensorlake_spark.layouts.layout_registry import LAYOUTS, layout_of, stored_layout

__all__ = ["LAYOUTS", "AnySelection", "Layout", "grid_of", "layout_of", "stored_layout"]
