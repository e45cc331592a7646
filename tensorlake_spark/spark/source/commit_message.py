"""What a task tells the driver of the tensors that it wrote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from pyspark.sql.datasource import WriterCommitMessage

from tensorlake_spark.delta.log.data_file import DataFile
from tensorlake_spark.indexing import Box
from tensorlake_spark.rows.row import Totals
from tensorlake_spark.tensor.spec import TensorSpec

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Written:
    """What a task wrote of one tensor.

    Attributes
    ----------
    spec : TensorSpec
        As the task saw it.
    boxes : tuple of Box
        Where it lies: slabs in what is written, cells in the tensor.
    totals : Totals
        What the rows add up to.
    spans : tuple of (int, int)
        The places of its rows in the tensor's storage order, half-open: for cells one for each box, for slabs
        one for all. None of a tensor that is a row of the DataFrame, which counts from 0.
    sample : (int, int)
        Of a slab by which the task chose a layout how many elements are not zero, and how many there are.
    """

    spec: TensorSpec
    boxes: tuple[Box, ...]
    totals: Totals
    spans: tuple[tuple[int, int], ...] = ()
    sample: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class TensorCommitMessage(WriterCommitMessage):
    """What a task tells the driver: names and statistics, never data."""

    files: tuple[DataFile, ...] = ()
    written: tuple[Written, ...] = ()
