"""The tree of errors: its shape is part of the product."""

import pickle

import numpy as np
import pandas as pd
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
    "NumberOverflowError": OverflowError,
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
    "DeniedStorageError": PermissionError,
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
        (errors.InvalidOptionError, lambda p: tl.dataset(f"{p}/ds").loader(1, cache=HALF)),
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


FLAGS = [
    ("dry_run", lambda p, v: tl.open(f"{p}/lake").optimize(dry_run=v)),
    ("dry_run", lambda p, v: tl.open(f"{p}/lake").vacuum(dry_run=v)),
    ("dry_run", lambda p, v: tl.open(f"{p}/lake").abort_uploads(dry_run=v)),
    ("dry_run", lambda p, v: tl.open(f"{p}/lake").purge("x", dry_run=v)),
    ("now", lambda p, v: tl.open(f"{p}/lake").purge("x", now=v)),
    ("repair", lambda p, v: tl.open(f"{p}/lake").check(repair=v)),
    ("replace", lambda p, v: tl.open(f"{p}/lake").tag("name", replace=v)),
    ("create", lambda p, v: tl.open(f"{p}/lake", create=v)),
    ("verify", lambda p, v: tl.open(f"{p}/lake", verify=v)),
    ("create", lambda p, v: tl.dataset(f"{p}/ds", create=v)),
    ("dry_run", lambda p, v: tl.dataset(f"{p}/ds").vacuum(dry_run=v)),
    ("dry_run", lambda p, v: tl.dataset(f"{p}/ds").purge([0], dry_run=v)),
    ("now", lambda p, v: tl.dataset(f"{p}/ds").purge([0], now=v)),
    ("deep", lambda p, v: tl.dataset(f"{p}/ds").check(deep=v)),
    ("sources", lambda p, v: tl.dataset(f"{p}/ds").check(sources=v)),
    ("renumber", lambda p, v: tl.dataset(f"{p}/ds").rechunk(renumber=v)),
    ("replace", lambda p, v: tl.dataset(f"{p}/ds").save_view("name", None, replace=v)),
    ("drop_last", lambda p, v: tl.dataset(f"{p}/ds").loader(1, drop_last=v)),
    ("nullable", lambda p, v: tl.types.Text(nullable=v)),
    ("normalized", lambda p, v: tl.types.BoundingBox(normalized=v)),
]


@pytest.mark.parametrize(("name", "act"), FLAGS)
@pytest.mark.parametrize("value", ["no", None, pd.NA, np.array([True, False]), 1], ids=repr)
def test_what_is_neither_true_nor_false_is_refused_and_does_nothing(places, name, act, value):
    with pytest.raises(errors.InvalidOptionError, match=f"{name}=.* is not True or False"):
        act(places, value)
    assert "x" in tl.open(f"{places}/lake")
    assert len(tl.dataset(f"{places}/ds")) == 1


def test_a_bool_of_numpy_is_a_bool():
    assert errors.check_flag("x", np.True_) is True
    assert errors.check_flag("x", np.bool_(0)) is False
    assert tl.types.Text(nullable=np.zeros(3).any()).nullable is False


ONE = np.array(1)  # it has the method of a loop, but no axis to loop over


@pytest.mark.parametrize(
    "act",
    [
        lambda p: tl.open(f"{p}/lake").write("y", np.zeros(2), axes=ONE),
        lambda p: tl.open(f"{p}/lake").optimize(ONE),
        lambda p: tl.open(f"{p}/lake").check(ONE),
        lambda p: tl.open(f"{p}/lake").restore(ONE, 1),
        lambda p: tl.open(f"{p}/lake").features("f").write_parts(ONE),
        lambda p: tl.estimate(np.zeros(2), layouts=ONE),
        lambda p: tl.dataset(f"{p}/ds").to_arrow(ONE),
        lambda p: tl.dataset(f"{p}/ds").extend(ONE),
        lambda p: tl.dataset(f"{p}/ds").copy(f"{p}/copy", columns=ONE),
        lambda p: tl.dataset(f"{p}/ds").query("SELECT t FROM dataset").to_arrow(ONE),
        lambda p: tl.dataset(f"{p}/ds").query("SELECT t FROM dataset").to_arrow(5),
        lambda p: tl.dataset(f"{p}/ds").query("SELECT t FROM dataset").loader(1, columns=ONE),
        lambda p: tl.types.ClassLabel(ONE),
    ],
)
def test_an_array_without_axes_is_no_list(places, act):
    with pytest.raises(errors.TensorLakeError, match=r"not a list|samples are|not an iterator"):
        act(places)


@pytest.mark.parametrize(
    "act",
    [
        lambda p: tl.open(f"{p}/lake").write("y", np.zeros((2, 2)), axes={"a", "b"}),
        lambda p: tl.types.ClassLabel({"cat", "dog"}),
        lambda p: tl.types.ClassLabel(frozenset(["cat"])),
        lambda p: tl.types.ClassLabel({"cat": 1, "dog": 0}),
    ],
)
def test_a_set_is_refused_where_the_order_counts(places, act):
    with pytest.raises(errors.TensorLakeError, match="is not a list"):
        act(places)


@pytest.mark.parametrize("value", [pd.NA, np.array(["a", "b"]), pd.Series([1, 2])], ids=repr)
@pytest.mark.parametrize(
    "act",
    [
        lambda p, v: tl.open(f"{p}/lake").write("y", np.zeros(2), mode=v),
        lambda p, v: tl.open(f"{p}/lake").write("y", np.zeros(2), layout=v),
        lambda p, v: tl.open(f"{p}/lake").write("y", np.zeros(2), quantize=v),
        lambda p, v: tl.open(f"{p}/lake").convert("x", layout=v),
        lambda p, v: tl.open(f"{p}/lake").convert("x", quantize=v),
        lambda p, v: tl.dataset(f"{p}/ds").copy(f"{p}/copy", links=v),
        lambda p, v: tl.dataset(f"{p}/ds").copy(f"{p}/copy", row_group_bytes=v),
        lambda p, v: tl.dataset(f"{p}/ds").drop_column(v),
        lambda p, v: tl.dataset(f"{p}/ds").rename_column("t", v),
        lambda p, v: tl.dataset(f"{p}/ds").rename_column(v, "u"),
        lambda p, v: tl.dataset(f"{p}/ds").add_column(v, "int32"),
    ],
)
def test_values_that_can_not_be_compared_are_named(places, act, value):
    with pytest.raises(errors.InvalidOptionError):
        act(places, value)


def test_whether_a_loop_can_run_is_told_without_beginning_one():
    class Epochs:
        begun = 0

        def __iter__(self):
            self.begun += 1
            return iter(())

    epochs = Epochs()
    assert errors.is_iterable(epochs)
    assert epochs.begun == 0
    assert not errors.is_iterable(np.array(1))
