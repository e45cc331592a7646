"""What the bytes mean: tensor <-> rows, without any file and without Delta.

``base`` the contract and its laws; ``codec`` bytes of a dense block; ``ftsf`` dense chunks;
``registry`` layouts by name; ``laws`` the laws as an exported test suite; ``FORMAT.md`` the normative
text of the row format.
"""

from tensorlake_spark.layouts.base import AnySelection, Layout, grid_of
from tensorlake_spark.layouts.registry import LAYOUTS, layout_of

__all__ = ["LAYOUTS", "AnySelection", "Layout", "grid_of", "layout_of"]
