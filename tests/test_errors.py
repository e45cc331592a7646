"""The tree of errors: its shape is part of the product."""

import pickle

import numpy as np
import pytest

import tensorlake_spark as tl
from tensorlake_spark import errors

TREE = {
    "InvalidKeyError": IndexError,
    "InvalidKeyTypeError": TypeError,
    "AxisError": ValueError,
    "InvalidSliceError": ValueError,
    "InvalidOptionError": ValueError,
    "InvalidQueryError": ValueError,
    "InvalidTensorError": ValueError,
    "UnsupportedDtypeError": TypeError,
    "InvalidSampleError": ValueError,
    "InvalidSampleTypeError": TypeError,
    "DenseResultError": ValueError,
    "UnsupportedFunctionError": TypeError,
    "UnknownLabelError": KeyError,
    "TensorNotFoundError": KeyError,
    "SampleNotFoundError": KeyError,
    "TensorExistsError": FileExistsError,
    "TableNotFoundError": FileNotFoundError,
    "FormatError": ValueError,
    "UnsupportedFeatureError": NotImplementedError,
    "StorageError": OSError,
    "CorruptDataError": OSError,
    "MissingDataError": FileNotFoundError,
    "ChangedLinkError": OSError,
    "MissingLinkError": FileNotFoundError,
    "InvalidLinkError": ValueError,
    "ForbiddenLinkError": PermissionError,
    "ConcurrentWriteError": RuntimeError,
    "BuilderClosedError": RuntimeError,
    "LoaderClosedError": RuntimeError,
    "LoaderWorkerError": RuntimeError,
    "MissingDependencyError": ImportError,
}


@pytest.mark.parametrize(("name", "builtin"), TREE.items())
def test_every_error_is_ours_and_the_builtin_that_a_caller_catches(name, builtin):
    kind = getattr(errors, name)
    assert issubclass(kind, errors.TensorLakeError)
    assert issubclass(kind, builtin)
    error = pickle.loads(pickle.dumps(kind("the message")))
    assert type(error) is kind
    assert str(error) == "the message"
    assert name in errors.__doc__


def test_no_error_is_missing_from_the_table():
    kinds = {n for n, k in vars(errors).items() if isinstance(k, type) and issubclass(k, Exception)}
    assert kinds == {*TREE, "TensorLakeError"}


def test_the_error_of_axes_is_numpys_too():
    assert issubclass(errors.AxisError, np.exceptions.AxisError)
    assert issubclass(errors.AxisError, (IndexError,))


HALF = "a\ud800b"


@pytest.mark.parametrize(
    ("kind", "act"),
    [
        (errors.InvalidTensorError, lambda p: tl.open(f"{p}/lake").write(f"g/{HALF}", np.zeros(2))),
        (errors.InvalidOptionError, lambda p: tl.open(f"{p}/lake").tag(HALF)),
        (errors.InvalidOptionError, lambda p: tl.open(f"{p}/lake").untag(HALF)),
        (errors.InvalidOptionError, lambda p: tl.open(f"{p}/lake", version=HALF)),
        (errors.InvalidOptionError, lambda p: tl.open(f"{p}/{HALF}")),
        (errors.InvalidOptionError, lambda p: tl.dataset(f"{p}/{HALF}", {"n": "int32"})),
        (errors.InvalidOptionError, lambda p: tl.dataset(f"{p}/new", {HALF: "int32"})),
        (errors.InvalidOptionError, lambda p: tl.types.ClassLabel([HALF])),
        (errors.InvalidSampleError, lambda p: tl.dataset(f"{p}/ds").append({"t": HALF})),
        (errors.InvalidLinkError, lambda p: tl.dataset(f"{p}/ds").append({"f": f"/x/{HALF}"})),
        (errors.InvalidOptionError, lambda p: tl.dataset(f"{p}/ds").positions_where(f"t = '{HALF}'")),
        (errors.InvalidQueryError, lambda p: tl.dataset(f"{p}/ds").query(f"SELECT '{HALF}' AS x FROM dataset")),
        (
            errors.InvalidQueryError,
            lambda p: tl.dataset(f"{p}/ds").query("SELECT :x AS x FROM dataset", parameters={"x": HALF}),
        ),
    ],
)  # fmt: skip
def test_half_of_a_character_is_refused_at_every_door(places, kind, act):
    with pytest.raises(kind, match=r"\\ud800") as caught:
        act(places)
    assert "\n" not in str(caught.value)
    assert str(caught.value).isascii(), "whoever prints it need not know what it is"


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A folder with a lake and a dataset."""
    folder = tmp_path_factory.mktemp("places")
    tl.open(f"{folder}/lake").write("x", np.zeros(2))
    tl.dataset(f"{folder}/ds", {"t": "string", "f": tl.types.Link(tl.types.Image())}).append(
        {"t": "a"}
    )
    return folder


def test_near_names_of_names_that_are_no_text():
    assert errors.did_you_mean("ab", [1, None, "abc"]) == "; did you mean 'abc'?"


@pytest.mark.parametrize(
    ("name", "act"),
    [
        ("create", lambda p, no: tl.open(f"{p}/none", create=no)),
        ("create", lambda p, no: tl.dataset(f"{p}/none", {"n": "int32"}, create=no)),
        ("verify", lambda p, no: tl.open(f"{p}/lake", verify=no)),
        ("replace", lambda p, no: tl.open(f"{p}/lake").tag("a", replace=no)),
        ("repair", lambda p, no: tl.open(f"{p}/lake").check(repair=no)),
        ("dry_run", lambda p, no: tl.open(f"{p}/lake").optimize(dry_run=no)),
        ("dry_run", lambda p, no: tl.open(f"{p}/lake").vacuum(dry_run=no)),
        ("dry_run", lambda p, no: tl.open(f"{p}/lake").abort_uploads(dry_run=no)),
        ("dry_run", lambda p, no: tl.open(f"{p}/lake").purge("x", dry_run=no)),
        ("now", lambda p, no: tl.open(f"{p}/lake").purge("x", now=no)),
        ("replace", lambda p, no: tl.dataset(f"{p}/ds").tag("a", replace=no)),
        ("deep", lambda p, no: tl.dataset(f"{p}/ds").check(deep=no)),
        ("dry_run", lambda p, no: tl.dataset(f"{p}/ds").vacuum(dry_run=no)),
        ("dry_run", lambda p, no: tl.dataset(f"{p}/ds").purge([0], dry_run=no)),
        ("now", lambda p, no: tl.dataset(f"{p}/ds").purge([0], now=no)),
        ("renumber", lambda p, no: tl.dataset(f"{p}/ds").rechunk(renumber=no)),
        ("drop_last", lambda p, no: tl.dataset(f"{p}/ds").loader(1, drop_last=no)),
        ("nullable", lambda p, no: tl.types.Text(nullable=no)),
        ("normalized", lambda p, no: tl.types.BoundingBox(normalized=no)),
    ],
)  # fmt: skip
def test_a_text_is_not_true(places, name, act):
    for no in ("no", 1, None, np.array([True])):
        with pytest.raises(errors.InvalidOptionError, match=rf"^{name}=.* is not True or False$"):
            act(places, no)
    assert list(tl.open(f"{places}/lake")) == ["x"]
    assert len(tl.dataset(f"{places}/ds")) == 1
    assert not (places / "none").exists()


def test_true_and_false_of_numpy():
    found = tl.types.Text(nullable=np.zeros(3).any())
    assert found == tl.types.Text(nullable=False)
    assert found.nullable is False
