"""Changes and restores at random, beside arrays of NumPy."""

import numpy as np
from examples import times
from hypothesis import given
from hypothesis import strategies as st

import tensorlake_spark as tl

STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["write", "append", "assign", "delete", "convert", "optimize", "restore", "tag"]
        ),
        st.sampled_from(["a", "b"]),
        st.integers(0, 2**16),
    ),
    min_size=4,
    max_size=14,
)


@times(0.25)
@given(steps=STEPS)
def test_a_restore_gives_what_numpy_had(tmp_path_factory, steps):
    lake = tl.open(tmp_path_factory.mktemp("lakes") / "lake")
    lake.write("a", np.arange(12).reshape(4, 3), block_shape=(2, 3), layout="ftsf")
    model = {"a": np.arange(12).reshape(4, 3)}
    past = {lake.version: dict(model)}
    for step, name, seed in steps:
        rng = np.random.default_rng(seed)
        rows = rng.integers(0, 3, (int(rng.integers(1, 4)), 3)) * 5
        have = model.get(name)
        if step == "write" or (have is None and step in ("append", "assign")):
            layout = str(rng.choice(["ftsf", "bsgs", "coo"]))
            lake.write(name, rows, mode="overwrite", layout=layout)
            model[name] = rows
        elif step == "append":
            lake.write(name, rows, mode="append")
            model[name] = np.concatenate([have, rows])
        elif step == "assign":
            model[name] = have.copy()
            model[name][seed % len(have)] = 7
            lake[name][seed % len(have)] = 7
        elif step == "optimize":
            lake.optimize()
        elif step == "tag":
            lake.tag(f"t{seed}", replace=True)
        elif step == "restore":
            version = sorted(past)[seed % len(past)]
            if name in past[version]:
                lake.restore(name, version)
                model[name] = past[version][name]
        elif have is not None:
            if step == "delete":
                lake.delete(name)
                del model[name]
            else:
                lake.convert(name, layout=str(rng.choice(["ftsf", "bsgs", "csr"])))
        past[lake.version] = dict(model)
        assert [*lake] == sorted(model)
        for key, want in model.items():
            np.testing.assert_array_equal(np.asarray(dense(lake[key][...])), want)
    assert [*lake.history()["version"]] == [*range(lake.version, -1, -1)]


def dense(value):
    return value.todense() if isinstance(value, tl.SparseTensor) else value
