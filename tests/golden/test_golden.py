"""Law 6: what version 1 wrote is read for ever, bit by bit."""

import json
from pathlib import Path

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.layouts.laws import bits
from tensorlake_spark.spec import dtype_of

HERE = Path(__file__).resolve().parent / "v1" / "ftsf"
EXPECTED = json.loads((HERE / "expected.json").read_text())


def test_the_table_holds_just_what_is_expected():
    assert list(tl.open(HERE / "table", create=False)) == sorted(EXPECTED)
    assert len(EXPECTED) >= 30


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_golden(name):
    ref = tl.open(HERE / "table", create=False)[name]
    want = EXPECTED[name]
    x = np.frombuffer(bytes.fromhex(want["bytes"]), dtype_of(want["dtype"])).reshape(want["shape"])
    assert bits(ref[...]) == bits(x)
    if x.ndim > 1 and x.size:
        assert bits(ref[::-1, 1:]) == bits(x[::-1, 1:])


def test_attributes_axes_and_fill_of_golden_tensors():
    lake = tl.open(HERE / "table", create=False)
    assert lake["fill"].attrs == {"unit": "K"}
    assert lake["fill"].fill_value == 2.5
    assert lake["fill"].nnz == 16
    assert lake["codec/raw"].axes == ("a", "b", "c")
    assert {lake[n].codec for n in lake if n.startswith("codec/")} == {
        n.removeprefix("codec/") for n in lake if n.startswith("codec/")
    }
