"""The pieces of an ingestion that can be resumed: which receipts of earlier tasks are taken."""

import numpy as np
import pytest

from tensorlake_spark.indexing import Box
from tensorlake_spark.rows.row import Totals
from tensorlake_spark.spark.ingest.pieces import Bands, Whole, choose
from tensorlake_spark.spark.source.commit_message import TensorCommitMessage, Written
from tensorlake_spark.tensor.spec import TensorSpec

# Three sources of four rows and two columns, one below the other, in bands of two.
BANDS = Bands(
    {(i, 0): (i + 2, 2) for i in range(0, 12, 2)}, {(i, 0): i // 4 for i in range(0, 12, 2)}
)


def wrote(*boxes, span=(0, 1), tensor="x"):
    spec = TensorSpec(tensor, (12, 2), np.dtype("u1"), "ftsf", (1, 2))
    made = tuple(Box((a, 0), (b, 2)) for a, b in boxes)
    return TensorCommitMessage((), (Written(spec, made, Totals(), (span,)),))


@pytest.mark.parametrize(
    ("boxes", "want"),
    [
        ([(0, 2)], [(0, 0)]),
        ([(0, 6)], [(0, 0), (2, 0), (4, 0)]),
        ([(8, 10), (2, 4)], [(8, 0), (2, 0)]),
        ([(3, 3)], []),
        ([(0, 3)], None),
        ([(1, 2)], None),
        ([(10, 14)], None),
    ],
)
def test_which_bands_a_task_wrote(boxes, want):
    assert BANDS.of(wrote(*boxes).written) == want


def test_a_band_is_as_wide_as_the_slab():
    narrow = Written(wrote().written[0].spec, (Box((0, 0), (2, 1)),), Totals())
    assert BANDS.of([narrow]) is None


def test_whole_tensors():
    pieces = Whole({"a": 0, "b": 1})
    assert pieces.of(wrote(tensor="a").written + wrote(tensor="b").written) == ["a", "b"]
    assert pieces.of(wrote(tensor="c").written) is None


def test_receipts_that_have_nothing_in_common_are_taken():
    found = {
        "one": wrote((0, 4), span=(0, 10)),
        "again": wrote((2, 6), span=(50, 60)),  # another copy of a task wrote a part of it
        "place": wrote((6, 8), span=(9, 12)),  # counted its rows from a place that is taken
        "torn": wrote((6, 9), span=(70, 80)),
        "empty": wrote(span=(90, 95)),
        "two": wrote((6, 8), span=(10, 20)),
    }
    names, done, free = choose(found, BANDS)
    assert names == ("one", "two")
    assert done == {(0, 0), (2, 0), (6, 0)}
    assert free == 20
    assert choose({}, BANDS) == ((), frozenset(), 0)


def test_a_receipt_that_has_a_tensor_twice_is_left():
    twice = TensorCommitMessage((), wrote(tensor="a").written * 2)
    assert choose({"one": twice}, Whole({"a": 0})) == ((), frozenset(), 0)
