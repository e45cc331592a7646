"""A part knows where its rows lie, and which places of the storage order are its own."""

import itertools
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import tensorlake_spark as tl
from tensorlake_spark.columns.elsewhere.feature_parts import Continued, PartEncoding, part_rows
from tensorlake_spark.rows.row import SCHEMA, Totals
from tensorlake_spark.tensor.spec import TensorSpec


def tensor(shape, segments, first, dtype="f4", seq=0):
    spec = TensorSpec(
        id="w/float32", shape=shape, dtype=np.dtype(dtype), layout="ftsf", block_shape=(4096, 16), codec="raw",
        fill=bytes(np.dtype(dtype).itemsize), segments=segments,
    )  # fmt: skip
    names = tuple(f"f{k}" for k in range(first[1], shape[1]))
    return Continued(spec, names, False, first, seq, Totals(1, 2, 3))


def test_part_rows_are_whole_blocks():
    assert part_rows(1 << 40, 1) == 4096
    assert part_rows(8, 4096 * 8 * 3 + 7) == 3 * 4096


@pytest.mark.parametrize(
    ("shape", "segments", "first"),
    [
        # Regions of a wide table are cut at other features than its blocks, if features were added.
        ((9005, 2100), ((0, 5), (0, 5)), (5, 0)),
        # Parts of features that are added end in other rows than blocks, if rows were appended.
        ((9000, 40), ((0, 100, 4196), (0, 5)), (0, 5)),
        ((9000, 9), ((0, 1, 2, 3, 7000), (0,)), (0, 0)),
    ],
)
def test_no_place_is_given_twice(tmp_path, shape, segments, first):
    lake = tl.open(tmp_path)
    lake.write("other", np.zeros(3))
    count = shape[1]
    continued = tensor(shape, segments, first, seq=7)
    encoding = PartEncoding(lake._snapshot().storage, 1 << 27, SCHEMA, (continued,))
    table = pa.table({f"f{k}": np.full(9000, k + 1, "f4") for k in range(count)})
    files, totals = [], Totals()
    for start in (8192, 0, 4096):
        part = table.slice(start, 4096).combine_chunks()
        done = pickle.loads(pickle.dumps(encoding)).encode(part, start, "m-")
        files += done.files
        totals += done.totals[0]
    ranges = []
    for file in files:
        places = pa.parquet.read_table(f"{lake.uri}/{file.path}", columns=["seq"])[
            "seq"
        ].to_pylist()
        assert places == sorted({*places})
        ranges.append((min(places), max(places)))
    ranges.sort()
    assert ranges[0][0] == 7
    assert all(a[1] < b[0] for a, b in itertools.pairwise(ranges))
    meta = continued.after([totals])
    assert meta.seq > ranges[-1][1]
    assert meta.totals == totals + Totals(1, 2, 3)
    assert totals.nnz == 9000 * (count - first[1])
