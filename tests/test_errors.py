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
