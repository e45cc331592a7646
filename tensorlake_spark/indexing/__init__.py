"""From a key to a plan, with NumPy only.

Begin with `box`.
May import ``errors`` only.

In reading order:

``box``        half-open ranges of every axis;
``grid``       the cells on which a tensor's boxes lie;
``selection``  the normal form of a key, and how NumPy's answer is shaped from it;
``point_selection``  the same for single elements;
``mixed_selection``  points on some axes, crossed with runs on the others;
``keys``       the room of what the user typed, or wrote as text -> selection;
``predicate``  which rows a selection needs;
``read_plan``  what a read will touch;
``morton``     an order in which neighbours on several axes stay near each other;
``overlaps``   which of many boxes meet;
``coords``     coordinates of elements as places in C order, sorted and combined;
``picking``    which stored elements of a sparse tensor are picked, and where they go.
"""

from tensorlake_spark.indexing.box import Box
from tensorlake_spark.indexing.grid import Grid, cells_along
from tensorlake_spark.indexing.keys.key import (
    Indexer,
    select,
    select_blocks,
    select_orthogonal,
    select_points,
    select_simple,
)
from tensorlake_spark.indexing.keys.key_text import format_key, named_key, parse_key
from tensorlake_spark.indexing.mixed_selection import AnySelection, MixedSelection
from tensorlake_spark.indexing.morton import morton_order
from tensorlake_spark.indexing.picking import lift, locate, place
from tensorlake_spark.indexing.point_selection import PointSelection
from tensorlake_spark.indexing.predicate import Predicate
from tensorlake_spark.indexing.read_plan import FilePlan, ReadPlan
from tensorlake_spark.indexing.selection import Points, Run, Selection

__all__ = [
    "AnySelection",
    "Box",
    "FilePlan",
    "Grid",
    "Indexer",
    "MixedSelection",
    "PointSelection",
    "Points",
    "Predicate",
    "ReadPlan",
    "Run",
    "Selection",
    "cells_along",
    "format_key",
    "lift",
    "locate",
    "morton_order",
    "named_key",
    "parse_key",
    "place",
    "select",
    "select_blocks",
    "select_orthogonal",
    "select_points",
    "select_simple",
]
