"""Orders of samples: pandas is the oracle for columns."""

import datetime as dt

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark.datasets.derived.sample_order import ordered_sids
from tensorlake_spark.errors import InvalidOptionError


@pytest.fixture
def ds(tmp_path):
    rng = np.random.default_rng(3)
    made = tl.dataset(
        tmp_path / "ds",
        {
            "a": "int32", "b": "float64", "train/name": "string", "day": "date", "ok": "bool",
            "big": "uint64", "x": tl.types.Tensor("float32", (2,)), "tags": tl.types.Sequence("int32"),
        },
    )  # fmt: skip
    count = 60
    made.extend(
        {
            "a": [None if n % 7 == 0 else int(rng.integers(0, 5)) for n in range(count)],
            "b": [float("nan") if n % 9 == 0 else float(rng.integers(0, 4)) for n in range(count)],
            "train/name": [f"n{rng.integers(0, 3)}" for _ in range(count)],
            "day": [dt.date(2026, 1, 1 + int(rng.integers(0, 9))) for _ in range(count)],
            "ok": [bool(n % 3) for n in range(count)],
            "big": [(1 << 63) + int(rng.integers(0, 5)) for _ in range(count)],
            "x": np.zeros((count, 2), "f4"),
            "tags": [[n] * (n % 3) for n in range(count)],
        }
    )
    made.delete([5, 17])
    return made


def of(ds, by):
    """The sids in the order of a key of each sample."""
    values = dict(zip(ds.sids.tolist(), ds, strict=True))
    return sorted(values, key=lambda sid: (*by(values[sid]), sid))


def up(value):
    """A key by which nulls come first, and NaN after all numbers."""
    if value is None:
        return (0,)
    return (2,) if value != value else (1, value)


def nulls_last(value):
    return (9,) if value is None else up(value)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("a", lambda row: (up(row["a"]),)),
        ("A asc NULLS LAST", lambda row: (nulls_last(row["a"]),)),
        ("b, a", lambda row: (up(row["b"]), up(row["a"]))),
        ("train.name, day", lambda row: (row["train/name"], row["day"])),
        ('"train/name" , ok', lambda row: (row["train/name"], row["ok"])),
        ("`big`, a NULLS FIRST", lambda row: (row["big"], up(row["a"]))),
    ],
)
def test_columns(ds, text, key):
    assert ordered_sids(ds.stored, text).tolist() == of(ds, key)


@pytest.mark.parametrize("text", ["a DESC", "b DESC", "a DESC NULLS FIRST", "big DESC"])
def test_descending(ds, text):
    name, first = text.split()[0], "FIRST" in text
    found = [ds.sample(sid)[name] for sid in ordered_sids(ds.stored, text).tolist()]
    nulls = [value for value in found if value is None]
    rest = [value for value in found if value is not None]
    assert found == (nulls + rest if first else rest + nulls) or name == "b"
    keys = [up(value) for value in rest]
    assert keys == sorted(keys, reverse=True)


def test_equal_ones_stay_in_the_order_of_their_sids(ds):
    found = ordered_sids(ds.stored, "ok DESC")
    split = int(np.flatnonzero(np.diff(found) < 0)[0]) + 1
    assert (np.diff(found[:split]) > 0).all()
    assert (np.diff(found[split:]) > 0).all()


def test_numbers(ds):
    order = ds.sids[::-1].copy()
    assert ordered_sids(ds.stored, order.tolist()).tolist() == order.tolist()
    assert ordered_sids(ds.stored, order.astype(np.uint32)).dtype == np.int64


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ("nme", "no column 'nme'"),
        ("x", "no column 'x' that has an order"),
        ("x.data", "no column 'x.data'"),
        ("a + 1", "is not a column; store it"),
        ("g/a", "in double quotes"),
        ("a; SELECT 2", "more than columns"),
        ("a LIMIT 3", "more than columns"),
        ("a) ORDER BY (b", "not an order of SQL"),
        ("", "has 0 characters, and an order has 1 to 65536; name columns"),
        (", ".join(["a"] * 30_000), "has 89998 characters, and an order has 1 to 65536"),
        ("tags", "no column 'tags' that has an order"),
        ("tags.list.element", "no column 'tags.list.element' that has an order"),
        ([1, 2], "each of the 58 samples once"),
        ([0.5], "float64 of shape"),
        ([[1]], "of shape"),
    ],
)
def test_what_is_no_order(ds, order, said):
    with pytest.raises(InvalidOptionError, match=said.replace("(", r"\(")):
        ordered_sids(ds.stored, order)


def test_twice_the_same_number(ds):
    order = ds.sids.copy()
    order[0] = order[1]
    with pytest.raises(InvalidOptionError, match="once"):
        ordered_sids(ds.stored, order)
