"""BSGS keeps the laws, cuts blocks that prune, and stores full blocks as arrays."""

from tensorlake_spark.layouts import layout_of
from tensorlake_spark.layouts.laws import SparseLaws


class TestBsgs(SparseLaws):
    layout = layout_of("bsgs")
