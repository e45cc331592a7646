"""A dataset is a list of dicts, whatever is done to it and in whatever order."""

from __future__ import annotations

import shutil
import tempfile

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from examples import times
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import tensorlake_spark as tl
from tensorlake_spark.delta.samples import sample_writer

SEEDS = st.integers(0, 2**31)
NAMES = st.sampled_from(["size", "label", "picture", "group/box", "group/name", "photo", "scan"])
LABELS = ["cat", "dog"]
TYPES = {
    "size": tl.types.as_type("int32"),
    "label": tl.types.ClassLabel(LABELS),
    "picture": tl.types.Image("png"),
    "group/box": tl.types.Tensor("float32", (None, 2)),
    "group/name": tl.types.Text(),
    "photo": tl.types.Image("png", apart=True),
    "scan": tl.types.Tensor("uint8", (None, 20)),
}
TILE_BYTES = 100  # scans of more than five rows are tiled


def value(name, seed):
    """A value of the type that a column of that name begins with."""
    rng = np.random.default_rng(seed)
    if rng.random() < 0.2:
        return None
    return {
        "size": lambda: int(rng.integers(10)),
        "label": lambda: int(rng.integers(2)),
        "picture": lambda: rng.integers(0, 255, (int(rng.integers(1, 5)), 3, 3)).astype(np.uint8),
        "group/box": lambda: rng.random((int(rng.integers(3)), 2)).astype(np.float32),
        "group/name": lambda: "x" * int(rng.integers(5)),
        "photo": lambda: rng.integers(0, 255, (2, int(rng.integers(1, 5)), 3)).astype(np.uint8),
        "scan": lambda: rng.integers(0, 255, (int(rng.integers(9)), 20)).astype(np.uint8),
    }[name]()


def same(a, b):
    if a is None or b is None:
        return a is None and b is None
    return np.array_equal(a, b)


class DatasetMachine(RuleBasedStateMachine):
    """The model is `self.rows`, in the order of their sids; `self.past` keeps what some versions were."""

    @initialize(seed=SEEDS)
    def start(self, seed):
        self.path = tempfile.mkdtemp()
        self.columns = {
            name: name for name in ("size", "label", "group/box", "photo", "scan")
        }  # name -> whose type
        kinds = {name: TYPES[name] for name in self.columns}
        self.ds = tl.dataset(self.path, kinds, tile_bytes=TILE_BYTES)
        self.rows = []
        self.next = 0
        self.past = {}
        self.extend(seed, 4)

    def sample(self, seed):
        return {name: value(kind, seed + k) for k, (name, kind) in enumerate(self.columns.items())}

    def take_in(self, samples):
        for sample in samples:
            self.rows.append({"sid": self.next, **sample})
            self.next += 1

    def column(self, name):
        """One of the columns that are there."""
        names = sorted(self.columns)
        return names[len(name) % len(names)]

    # ------------------------------------------------------------------ samples

    @rule(seed=SEEDS)
    def append(self, seed):
        sample = self.sample(seed)
        self.ds.append(sample)
        self.take_in([sample])

    @rule(seed=SEEDS, count=st.integers(0, 6))
    def extend(self, seed, count):
        samples = [self.sample(seed + 10 * k) for k in range(count)]
        self.ds.extend(samples if seed % 2 else iter(samples))
        self.take_in(samples)

    @precondition(lambda self: self.rows)
    @rule(seed=SEEDS, name=NAMES, places=st.lists(st.integers(0, 50), min_size=1, max_size=4))
    def update(self, seed, name, places):
        name = self.column(name)
        chosen = list(dict.fromkeys(place % len(self.rows) for place in places))
        values = [value(self.columns[name], seed + k) for k in range(len(chosen))]
        sids = [self.rows[place]["sid"] for place in chosen]
        assert self.ds.update(sids, {name: values}) == len(sids)
        for place, one in zip(chosen, values, strict=True):
            self.rows[place][name] = one

    @rule(seed=SEEDS, name=NAMES, label=st.sampled_from(LABELS), sid=st.integers(0, 30))
    def update_where(self, seed, name, label, sid):
        name = self.column(name)
        one = value(self.columns[name], seed)
        labels = [other for other, kind in self.columns.items() if kind == "label"]
        where = f"\"{labels[0]}\" = '{label}' OR sid > {sid}" if labels else f"sid > {sid}"
        meant = [
            row for row in self.rows
            if row["sid"] > sid or (labels and row[labels[0]] == LABELS.index(label))
        ]  # fmt: skip
        assert self.ds.update(where, {name: one}) == len(meant)
        for row in meant:
            row[name] = one

    @precondition(lambda self: self.rows)
    @rule(seed=SEEDS, name=NAMES, key=st.slices(8) | st.integers(-8, 7))
    def assign(self, seed, name, key):
        name = self.column(name)
        one = value(self.columns[name], seed)
        places = range(len(self.rows))
        if isinstance(key, int):
            if not -len(self.rows) <= key < len(self.rows):
                with pytest.raises(tl.InvalidKeyError):
                    self.ds[name][key] = one
                return
            self.ds[name][key] = one
            self.rows[key][name] = one
            return
        chosen = places[key]
        values = [value(self.columns[name], seed + k) for k in range(len(chosen))]
        self.ds[name][key] = values
        for place, found in zip(chosen, values, strict=True):
            self.rows[place][name] = found

    @rule(seed=SEEDS, name=NAMES, past=st.integers(0, 3))
    def assign_past_the_end(self, seed, name, past):
        name = self.column(name)
        one = value(self.columns[name], seed)
        self.ds.strict = False
        self.ds[name][len(self.rows) + past] = one
        self.ds.strict = True
        self.take_in([dict.fromkeys(self.columns) for _ in range(past)])
        self.take_in([{**dict.fromkeys(self.columns), name: one}])

    @precondition(lambda self: self.rows)
    @rule(places=st.lists(st.integers(0, 50), min_size=1, max_size=3))
    def delete(self, places):
        sids = {self.rows[place % len(self.rows)]["sid"] for place in places}
        assert self.ds.delete(sorted(sids)) == len(sids)
        self.rows = [row for row in self.rows if row["sid"] not in sids]
        with pytest.raises(tl.SampleNotFoundError):
            self.ds.sample(min(sids))

    @rule(low=st.integers(0, 30), high=st.integers(0, 30))
    def delete_where(self, low, high):
        kept = [row for row in self.rows if not low <= row["sid"] <= high]
        assert self.ds.delete(f"sid BETWEEN {low} AND {high}") == len(self.rows) - len(kept)
        self.rows = kept

    # ------------------------------------------------------------------ columns

    @rule(name=NAMES, seed=SEEDS, how=st.sampled_from(["plain", "one", "each"]))
    def add_column(self, name, seed, how):
        if name in self.columns:
            with pytest.raises(tl.InvalidOptionError, match="already"):
                self.ds.add_column(name, TYPES[name])
            return
        values = [value(name, seed + k) for k in range(len(self.rows))]
        if how == "plain":
            self.ds.add_column(name, TYPES[name])
            values = [None] * len(self.rows)
        elif how == "one":
            one = value(name, seed)
            self.ds.add_column(name, TYPES[name], one)
            values = [one] * len(self.rows)
        else:
            self.ds.add_column(name, TYPES[name], values)
        self.columns[name] = name
        for row, one in zip(self.rows, values, strict=True):
            row[name] = one

    @precondition(lambda self: len(self.columns) > 2)
    @rule(name=NAMES)
    def drop_column(self, name):
        name = self.column(name)
        self.ds.drop_column(name)
        del self.columns[name]
        for row in self.rows:
            del row[name]

    @rule(name=NAMES, group=st.booleans())
    def rename_column(self, name, group):
        name = self.column(name)
        new = f"{'group/' if group else ''}new{len(self.past)}"
        if new in self.columns:
            return
        self.ds.rename_column(name, new)
        self.columns[new] = self.columns.pop(name)
        for row in self.rows:
            row[new] = row.pop(name)

    # ------------------------------------------------------------------ versions

    @rule()
    def reopen(self):
        self.past[self.ds.version] = [dict(row) for row in self.rows], dict(self.columns)
        self.ds = tl.dataset(self.path)

    @rule()
    def optimize(self):
        self.ds.optimize()

    @precondition(lambda self: self.past)
    @rule(number=st.integers(0, 10))
    def restore(self, number):
        version = sorted(self.past)[number % len(self.past)]
        rows, columns = self.past[version]
        self.ds.restore(version)
        self.rows, self.columns = [dict(row) for row in rows], dict(columns)

    @precondition(lambda self: self.rows)
    @rule(place=st.integers(0, 50), above=st.integers(0, 5))
    def insert_by_plain_delta(self, place, above):
        """A row with another number, and without what lies elsewhere."""
        row = self.rows[place % len(self.rows)]
        apart = [name for name, kind in self.columns.items() if kind in ("photo", "scan")]
        stored = DeltaTable(self.path).to_pyarrow_table(filters=[("sid", "=", row["sid"])])
        sid = self.next + above
        (one,) = stored.to_pylist()
        for name in apart:
            group, _, inner = name.rpartition("/")
            (one[group] if group else one)[inner] = None
        table = pa.Table.from_pylist([one | {"sid": sid}], stored.schema)
        write_deltalake(self.path, table, mode="append")
        self.ds.refresh()
        self.rows.append(row | dict.fromkeys(apart) | {"sid": sid})
        self.next = sid + 1

    @precondition(lambda self: self.past)
    @rule(number=st.integers(0, 10))
    def an_old_version_stays(self, number):
        version = sorted(self.past)[number % len(self.past)]
        self.compare(tl.dataset(self.path, version=version), *self.past[version])

    @invariant()
    def is_a_list_of_dicts(self):
        self.compare(self.ds, self.rows, self.columns)

    def compare(self, ds, rows, columns):
        assert {*ds.schema} == {*columns}
        assert len(ds) == len(rows)
        assert ds.sids.tolist() == [row["sid"] for row in rows]
        for name in columns:
            found = [*ds[name][:]]
            assert all(same(a, row[name]) for a, row in zip(found, rows, strict=True)), name

    def teardown(self):
        shutil.rmtree(self.path, ignore_errors=True)


def test_a_dataset_is_a_list_of_dicts(monkeypatch):
    monkeypatch.setattr(sample_writer, "GROUP_ROWS", 3)
    run_state_machine_as_test(DatasetMachine, settings=times(0.4))
