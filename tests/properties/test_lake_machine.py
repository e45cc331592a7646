"""A lake is a dict of NumPy arrays, whatever is done to it and in whatever order."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from order import rows_in_order

import tensorlake_spark as tl
from tensorlake_spark.delta.files.writer import FileWriter
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.layouts.testing.laws import bits
from tensorlake_spark.layouts.testing.strategies import mixed_keys
from tensorlake_spark.writing.options import WriteOptions, new_spec
from tensorlake_spark.writing.pipeline import encode
from tensorlake_spark.writing.source import source_of

TENSOR = "struct<dtype: string, shape: array<bigint>, data: binary>"
IDS = st.sampled_from(["a", "b", "group/c"])
NAMES = st.integers(0, 2)
"""Of the tensors that are there, by their place."""
LAYOUTS = st.sampled_from(["auto", "ftsf", "bsgs", "coo", "csr", "csc", "csf"])
SEEDS = st.integers(0, 2**31)
SHAPES = st.lists(st.integers(0, 6), min_size=1, max_size=3).map(tuple)


def random_array(seed, shape, dtype="i4"):
    rng = np.random.default_rng(seed)
    x = rng.integers(-3, 4, shape).astype(dtype)
    return np.where(rng.random(shape) < 0.3, 0, x).astype(dtype) if seed % 3 else x * 0


def keys(x):
    """Keys that NumPy takes: slices alone, or of any kind."""
    return st.tuples(*map(st.slices, x.shape)) | mixed_keys(x.shape).filter(lambda k: takes(x, k))


def takes(x, key):
    try:
        x[key]
    except IndexError:
        return False
    return True


class LakeMachine(RuleBasedStateMachine):
    """The model is `self.model`; `self.past` keeps what every version was."""

    versions = Bundle("versions")

    @initialize(target=versions, seed=SEEDS)
    def start(self, seed):
        self.path = tempfile.mkdtemp()
        self.lake = tl.open(self.path)
        self.model = {}
        self.past = {}
        self.seen = set()
        self.write("a", seed, (3, 5), 2, "ftsf")
        return self.write("b", seed + 1, (4, 2, 3), 2, "bsgs")

    def there(self, name):
        """One of the tensors that are there."""
        return sorted(self.model)[name % len(self.model)]

    def teardown(self):
        shutil.rmtree(getattr(self, "path", ""), ignore_errors=True)

    def remember(self):
        self.past[self.lake.version] = {k: v.copy() for k, v in self.model.items()}
        return self.lake.version

    @rule(
        target=versions, name=IDS, seed=SEEDS, shape=SHAPES, block=st.integers(1, 4), layout=LAYOUTS
    )
    def write(self, name, seed, shape, block, layout):
        x = random_array(seed, shape)
        has_blocks = layout == "auto" or layout_of(layout).has_blocks
        options = {"block_shape": (block,) * x.ndim} if has_blocks else {}
        try:
            ref = self.lake.write(name, x, layout=layout, **options)
            assert name not in self.model
        except tl.TensorExistsError:
            assert name in self.model
            ref = self.lake.write(name, x, layout=layout, mode="overwrite", **options)
        self.model[name] = x
        assert bits(ref[...]) == bits(x)
        return self.remember()

    @precondition(lambda self: self.model)
    @rule(
        target=versions,
        name=NAMES,
        seed=SEEDS,
        size=st.integers(0, 5),
        axis=st.integers(0, 2),
        slabs=st.booleans(),
    )
    def append(self, name, seed, size, axis, slabs):
        name = self.there(name)
        old = self.model[name]
        axis %= old.ndim
        shape = tuple(size if k == axis else n for k, n in enumerate(old.shape))
        more = random_array(seed, shape)
        data = more
        if slabs and size:
            data = iter([np.take(more, range(1), axis), np.take(more, range(1, size), axis)])
        self.lake.write(name, data, mode="append", axis=axis)
        self.model[name] = np.concatenate([old, more], axis)
        return self.remember()

    @precondition(lambda self: self.model)
    @rule(target=versions, name=NAMES, seed=SEEDS, rule=st.sampled_from(["error", "sum", "last"]))
    def add_elements(self, name, seed, rule):
        name = self.there(name)
        if self.lake[name].layout == "ftsf":
            return self.remember()
        old = self.model[name]
        more = random_array(seed, old.shape)
        rules = {self.lake[name]._meta.spec.params.get("duplicates", "error"), rule} - {"error"}
        elements = tl.SparseTensor.from_dense(more)
        try:
            self.lake.write(name, elements, mode="append", axis=None, duplicates=rule)
        except tl.InvalidOptionError:
            assert rules == {"sum", "last"}
            return self.remember()
        except tl.InvalidTensorError:
            assert not rules
            assert ((old != 0) & (more != 0)).any()
            return self.remember()
        added = np.where(more != 0, more, old) if rules == {"last"} else old + more
        self.model[name] = added.astype(old.dtype)
        return self.remember()

    @precondition(lambda self: self.model)
    @rule(target=versions, name=NAMES, layout=LAYOUTS)
    def convert(self, name, layout):
        name = self.there(name)
        ref = self.lake.convert(name, layout=layout)
        assert layout in ("auto", ref.layout)
        return self.remember()

    @precondition(lambda self: self.model)
    @rule(target=versions, name=NAMES, seed=SEEDS, data=st.data())
    def assign(self, name, seed, data):
        name = self.there(name)
        x = self.model[name]
        key = data.draw(keys(x))
        values = random_array(seed, x[key].shape)
        self.lake[name][key] = values
        x = x.copy()
        x[key] = values
        self.model[name] = x
        return self.remember()

    @rule(target=versions, target_bytes=st.sampled_from([1 << 14, 1 << 27]))
    def optimize(self, target_bytes):
        done = self.lake.optimize(target_bytes=target_bytes)
        assert done.files_after < done.files_before or done.files_before == 0
        assert self.lake.optimize(target_bytes=target_bytes).files_before == 0
        return self.remember()

    @precondition(lambda self: self.model)
    @rule(target=versions, name=NAMES, axis=st.integers(0, 2))
    def arrange(self, name, axis):
        """Rows in Morton order; a second run finds nothing to do."""
        name = self.there(name)
        axes = range(min(axis + 1, self.model[name].ndim))
        rule = self.lake[name]._meta.spec.params.get("duplicates", "error")
        try:
            self.lake.optimize(name, zorder=axes)
            assert rule == "error"
        except tl.InvalidOptionError:
            assert rule != "error"
            return self.remember()
        assert self.lake.optimize(name, zorder=axes).files_before == 0
        return self.remember()

    @rule(target=versions, name=IDS, version=versions)
    def restore(self, name, version):
        if version not in self.past:
            return self.remember()
        try:
            self.lake.restore(name, version)
            self.model[name] = self.past[version][name].copy()
        except tl.TensorNotFoundError:
            assert name not in self.past[version]
        return self.remember()

    @rule(version=versions)
    def tag(self, version):
        if version in self.past and version > 0:
            assert self.lake.tag("kept", version, replace=True) == version
            self.remember()

    @rule()
    def vacuum(self):
        """Old versions go, but for the one that has a tag."""
        tagged = self.lake.tags().values()
        self.lake.vacuum(0)
        kept = {*tagged, self.lake.version}
        self.past = {v: model for v, model in self.past.items() if v in kept}

    @precondition(lambda self: self.model)
    @rule(target=versions, name=NAMES, data=st.data())
    def purge(self, name, data):
        """A tensor, or a part of it, leaves all versions; what is left of them is what it was."""
        name = self.there(name)
        x = self.model[name]
        part = None if data.draw(st.booleans()) else tuple(data.draw(st.slices(n)) for n in x.shape)
        receipt = self.lake.purge(name, part, now=True)
        assert not receipt.pending
        assert all("another rank" in why for _, why in receipt.uncertified)
        if part is None:
            del self.model[name]
        else:
            x[part] = 0
        lost = set()
        for run in filter(None, receipt.versions_lost.split(", ")):
            first, _, last = run.partition("-")
            lost |= set(range(int(first), int(last or first) + 1))
        assert self.lake.version not in lost
        self.past = {v: model for v, model in self.past.items() if v not in lost}
        for model in self.past.values():
            if part is None:
                assert name not in model
        return self.remember()

    @rule()
    def check(self):
        report = self.lake.check()
        assert report.ok, report

    @rule(target=versions, name=IDS)
    def delete(self, name):
        if name in self.model:
            self.lake.delete(name)
            del self.model[name]
            return self.remember()
        try:
            self.lake.delete(name)
        except tl.TensorNotFoundError:
            return self.remember()
        raise AssertionError("deleted what was not there")

    @rule()
    def reopen(self):
        self.lake = tl.open(self.path)

    @rule(seed=SEEDS)
    def crash_between_data_files_and_commit(self, seed):
        """What a killed writer leaves: whole data files that no commit names."""
        writer = FileWriter(Storage(self.path))
        source = source_of(random_array(seed, (3, 4)))
        spec = new_spec("a", source, WriteOptions(block_shape=(2, 2)))
        for _, rows in encode(spec, source.regions(spec.block_shape)):
            for row in rows:
                writer.add(spec, 0, row)
        writer.finish()

    @rule(version=consumes(versions))
    def travel(self, version):
        if version not in self.past:
            return
        old = tl.open(self.path, version=version)
        assert list(old) == sorted(self.past[version])
        for name, x in self.past[version].items():
            assert bits(old[name][...]) == bits(x)

    @precondition(lambda self: self.model)
    @rule(name=NAMES, data=st.data())
    def slice(self, name, data):
        name = self.there(name)
        x = self.model[name]
        key = data.draw(keys(x))
        assert bits(self.lake[name][key]) == bits(x[key])

    @invariant()
    def the_lake_equals_the_model(self):
        if not hasattr(self, "lake"):
            return
        assert list(self.lake) == sorted(self.model)
        for name, x in self.model.items():
            assert bits(self.lake[name][...]) == bits(x)

    @invariant()
    def rows_of_files_are_in_order(self):
        """The files of all writers, also those that a change has left behind already."""
        files = {*Path(getattr(self, "path", "nowhere")).glob("*.parquet")}
        for path in files - getattr(self, "seen", files):
            rows_in_order(path)
            self.seen.add(path)


@pytest.mark.parametrize("examples", [10, pytest.param(250, marks=pytest.mark.soak)])
def test_whatever_is_done(examples):
    run_state_machine_as_test(
        LakeMachine,
        settings=settings(max_examples=examples, stateful_step_count=20, deadline=None),
    )


@pytest.mark.parametrize(
    ("examples", "steps"), [(3, 10), pytest.param(20, 12, marks=pytest.mark.soak)]
)
def test_with_changes_made_by_delta_spark(spark, examples, steps):
    """The same, with another writer in between, which knows nothing of tensors."""

    class WithSpark(LakeMachine):
        @rule(target=LakeMachine.versions, order=st.sampled_from(["", " ZORDER BY (id, seq)"]))
        def spark_optimize(self, order):
            spark.sql(f"OPTIMIZE delta.`{self.path}`{order}")
            return self.remember()

        @precondition(lambda self: self.model)
        @rule(target=LakeMachine.versions, name=NAMES)
        def spark_delete(self, name):
            name = self.there(name)
            spark.sql(f"DELETE FROM delta.`{self.path}` WHERE id = '{name}'")
            del self.model[name]
            return self.remember()

        @rule(target=LakeMachine.versions, version=LakeMachine.versions)
        def spark_restore(self, version):
            if version in self.past and version > 0:
                spark.sql(f"RESTORE TABLE delta.`{self.path}` TO VERSION AS OF {version}")
                self.model = {k: v.copy() for k, v in self.past[version].items()}
            return self.remember()

        @precondition(lambda self: self.model)
        @rule(target=LakeMachine.versions, name=NAMES, seed=SEEDS)
        def spark_append(self, name, seed):
            """A row a day through the data source."""
            name = self.there(name)
            old = self.model[name]
            more = random_array(seed, (1, *old.shape[1:]))
            tensor = ("int32", list(more.shape), more.tobytes())
            lo = [0] * more.ndim
            frame = spark.createDataFrame([(lo, tensor)], f"lo array<bigint>, tensor {TENSOR}")
            frame.write.format("tensor").option("id", name).mode("append").save(self.path)
            self.model[name] = np.concatenate([old, more])
            return self.remember()

    run_state_machine_as_test(
        WithSpark,
        settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None),
    )
