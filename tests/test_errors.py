"""The tree of errors: its shape is part of the product."""

import pickle

import numpy as np
import pytest

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
