"""A lake is a dict of NumPy arrays, whatever is done to it and in whatever order."""

from __future__ import annotations

import shutil
import tempfile

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
)

import tensorlake_spark as tl
from tensorlake_spark.choose import WriteOptions, new_spec
from tensorlake_spark.delta.storage import Storage
from tensorlake_spark.delta.write import FileWriter
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.layouts.laws import bits
from tensorlake_spark.put import encode
from tensorlake_spark.source import source_of

IDS = st.sampled_from(["a", "b", "group/c"])
LAYOUTS = st.sampled_from(["auto", "ftsf", "bsgs", "coo", "csr", "csc", "csf"])
SEEDS = st.integers(0, 2**31)
SHAPES = st.lists(st.integers(0, 6), min_size=1, max_size=3).map(tuple)


def random_array(seed, shape, dtype="i4"):
    rng = np.random.default_rng(seed)
    x = rng.integers(-3, 4, shape).astype(dtype)
    return np.where(rng.random(shape) < 0.3, 0, x).astype(dtype) if seed % 3 else x * 0


class LakeMachine(RuleBasedStateMachine):
    """The model is `self.model`; `self.past` keeps what every version was."""

    versions = Bundle("versions")

    @initialize()
    def start(self):
        self.path = tempfile.mkdtemp()
        self.lake = tl.open(self.path)
        self.model = {}
        self.past = {}

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

    @rule(
        target=versions,
        name=IDS,
        seed=SEEDS,
        size=st.integers(0, 5),
        axis=st.integers(0, 2),
        slabs=st.booleans(),
    )
    def append(self, name, seed, size, axis, slabs):
        if name not in self.model:
            return self.remember() if self.model else 0
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

    @rule(target=versions, name=IDS, seed=SEEDS, rule=st.sampled_from(["error", "sum", "last"]))
    def add_elements(self, name, seed, rule):
        if name not in self.model or self.lake[name].layout == "ftsf":
            return self.remember() if self.model else 0
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

    @rule(target=versions, name=IDS, layout=LAYOUTS)
    def convert(self, name, layout):
        if name not in self.model:
            return self.remember() if self.model else 0
        ref = self.lake.convert(name, layout=layout)
        assert layout in ("auto", ref.layout)
        return self.remember()

    @rule(target=versions, name=IDS, seed=SEEDS, data=st.data())
    def assign(self, name, seed, data):
        if name not in self.model:
            return self.remember() if self.model else 0
        x = self.model[name]
        key = tuple(data.draw(st.slices(n)) for n in x.shape)
        values = random_array(seed, x[key].shape)
        self.lake[name][key] = values
        x = x.copy()
        x[key] = values
        self.model[name] = x
        return self.remember()

    @rule(target=versions, target_bytes=st.sampled_from([1 << 14, 1 << 27]))
    def optimize(self, target_bytes):
        if self.lake.version is None:
            return 0
        done = self.lake.optimize(target_bytes=target_bytes)
        assert done.files_after < done.files_before or done.files_before == 0
        assert self.lake.optimize(target_bytes=target_bytes).files_before == 0
        return self.remember()

    @rule(target=versions, name=IDS)
    def delete(self, name):
        if name in self.model:
            self.lake.delete(name)
            del self.model[name]
            return self.remember()
        try:
            self.lake.delete(name)
        except tl.TensorNotFoundError:
            return self.remember() if self.lake.version is not None else 0
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

    @rule(name=IDS, data=st.data())
    def slice(self, name, data):
        if name in self.model:
            x = self.model[name]
            key = tuple(data.draw(st.slices(n)) for n in x.shape)
            assert bits(self.lake[name][key]) == bits(x[key])

    @invariant()
    def the_lake_equals_the_model(self):
        if not hasattr(self, "lake"):
            return
        assert list(self.lake) == sorted(self.model)
        for name, x in self.model.items():
            assert bits(self.lake[name][...]) == bits(x)


TestLake = LakeMachine.TestCase
TestLake.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
