"""Every error that this package raises on purpose.

Each class stands for one thing that a caller may want to handle. Each is also the built-in type that a
caller would expect::

    TensorLakeError
    |-- InvalidKeyError(IndexError)            the key does not fit the tensor's shape
    |   |-- InvalidKeyTypeError(TypeError)     a slice whose bounds are not integers
    |   `-- AxisError(numpy's AxisError)       an axis that the tensor does not have, or named twice
    |-- InvalidSliceError(ValueError)          the text or the step of a slice makes no sense
    |-- InvalidOptionError(ValueError)         an option, mode, layout or codec is unknown or out of range
    |   `-- InvalidQueryError                  the text of a query makes no sense, or cannot be computed
    |-- InvalidTensorError(ValueError)         shapes, ids or values that cannot be written, or do not fit
    |   |-- UnsupportedDtypeError(TypeError)   a dtype that no row can hold
    |   `-- NumberOverflowError(OverflowError) a number that the dtype it is computed in does not hold
    |-- InvalidSampleError(ValueError)         a sample does not fit the type of its column
    |   |-- InvalidLinkError                   a text that is no link, or has credentials in it
    |   `-- InvalidSampleTypeError(TypeError)  a value of a kind that the column does not take
    |-- DenseResultError(ValueError)           an operation would make most zeros of a sparse tensor non-zero
    |-- UnsupportedFunctionError(TypeError)    a function of NumPy that a sparse or stored tensor does not have
    |-- UnknownLabelError(KeyError)            no index of an axis has that label
    |-- TensorNotFoundError(KeyError)          no tensor of that id in this version
    |-- SampleNotFoundError(KeyError)          no sample of that sid in this version
    |-- TensorExistsError(FileExistsError)     mode="error" and the id is taken
    |-- TableNotFoundError(FileNotFoundError)  no table at that path, and create=False
    |-- FormatError(ValueError)                the table is not ours, or newer than this package
    |   `-- UnsupportedFeatureError(NotImplementedError)   a Delta table feature that we cannot read or write
    |-- StorageError(OSError)                  the store refused a request, or does not answer
    |   `-- DeniedStorageError(PermissionError)   this user may not read or write a file or folder
    |-- CorruptDataError(OSError)              stored bytes are not what was written
    |   |-- MissingDataError(FileNotFoundError)   a data file of the log is gone
    |   `-- ChangedLinkError                   what a link points to is not what was linked
    |       `-- MissingLinkError(FileNotFoundError)   ... and nothing is there any more
    |-- ForbiddenLinkError(PermissionError)    the rules of the reader do not allow a link
    |-- ConcurrentWriteError(RuntimeError)     another writer changed the same tensor first
    |-- BuilderClosedError(RuntimeError)       a builder of a sparse tensor is used after `build`
    |-- LoaderClosedError(RuntimeError)        a loader was closed while its batches were still taken
    |-- LoaderWorkerError(RuntimeError)        a process that makes batches for a loader has died
    `-- MissingDependencyError(ImportError)    an optional package is needed for this

The messages name the value, the place, the bound and the remedy. All of them pickle, because Spark
carries them from executors to the driver.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any


class TensorLakeError(Exception):
    """Base of every error that this package raises on purpose."""

    def __str__(self) -> str:
        # KeyError prints the repr of its argument; every message here is a sentence.
        return str(self.args[0]) if self.args else ""


class InvalidKeyError(TensorLakeError, IndexError):
    """A key does not fit the tensor: it is out of bounds, has too many axes, or a type that NumPy refuses too."""


class InvalidKeyTypeError(InvalidKeyError, TypeError):
    """A slice has bounds that are not integers."""


if TYPE_CHECKING:
    import numpy as np

    class AxisError(InvalidKeyError, np.exceptions.AxisError):
        """The tensor has no such axis, or an axis is named twice. It is NumPy's AxisError too, and so a ValueError."""


class InvalidSliceError(TensorLakeError, ValueError):
    """The text of a slice cannot be read, names an unknown axis, or has a step of zero."""


class InvalidOptionError(TensorLakeError, ValueError):
    """An option is unknown, or its value is out of its range."""


class InvalidQueryError(InvalidOptionError):
    """A query cannot be parsed or computed, names what does not exist, or does what queries may not do."""


class InvalidTensorError(TensorLakeError, ValueError):
    """A tensor cannot be written or computed: the shape or the id is wrong, or values or shapes do not fit."""


class UnsupportedDtypeError(InvalidTensorError, TypeError):
    """No row can hold this dtype, such as object or a structured dtype."""


class NumberOverflowError(InvalidTensorError, OverflowError):
    """A number that is computed with is beyond the range of the dtype."""


class InvalidSampleError(TensorLakeError, ValueError):
    """A sample does not fit the type of its column: its shape, its format, its range, or it is null."""


class InvalidLinkError(InvalidSampleError):
    """A link is not valid, or has credentials in it, which would be stored in the table."""


class InvalidSampleTypeError(InvalidSampleError, TypeError):
    """A value is of a kind that the column does not take, such as text in a column of numbers."""


class DenseResultError(TensorLakeError, ValueError):
    """The result would be dense, because zeros of a sparse tensor would become something else."""


class UnsupportedFunctionError(TensorLakeError, TypeError):
    """Sparse or stored tensors do not have this function of NumPy."""


class UnknownLabelError(TensorLakeError, KeyError):
    """No index of the axis has that label."""


class TensorNotFoundError(TensorLakeError, KeyError):
    """There is no tensor of that id in this version of the table."""


class SampleNotFoundError(TensorLakeError, KeyError):
    """There is no sample of that sid in this version of the dataset."""


class TensorExistsError(TensorLakeError, FileExistsError):
    """A tensor of this id exists, and the mode is ``"error"``."""


class TableNotFoundError(TensorLakeError, FileNotFoundError):
    """There is no table at that place."""


class FormatError(TensorLakeError, ValueError):
    """The table is not a tensor table, or was written by a newer format version."""


class UnsupportedFeatureError(FormatError, NotImplementedError):
    """The table uses a Delta feature that this package cannot read or cannot write."""


class StorageError(TensorLakeError, OSError):
    """The store refused a request (credentials, no such bucket, a full disk) or did not answer."""


class DeniedStorageError(StorageError, PermissionError):
    """This user may not read or write a file or a folder."""


class CorruptDataError(TensorLakeError, OSError):
    """Stored bytes are not what was written: a checksum or totals do not fit, or a file is truncated."""


class MissingDataError(CorruptDataError, FileNotFoundError):
    """A data file that the Delta log names does not exist."""


class ChangedLinkError(CorruptDataError):
    """What a link points to has another size, or is marked as another version, than when it was linked."""


class MissingLinkError(ChangedLinkError, FileNotFoundError):
    """What a link pointed to is gone."""


class ForbiddenLinkError(TensorLakeError, PermissionError):
    """The rules of the reader do not allow this link: its host, its address, its folder or its bucket."""


class ConcurrentWriteError(TensorLakeError, RuntimeError):
    """Another writer changed the same tensor first; nothing of this change was committed."""


class BuilderClosedError(TensorLakeError, RuntimeError):
    """A `SparseBuilder`, or a view of it, is used after `build` gave its elements away."""


class LoaderClosedError(TensorLakeError, RuntimeError):
    """A loader was closed while its batches were still taken."""


class LoaderWorkerError(TensorLakeError, RuntimeError):
    """A process that makes batches for a loader has died."""


class MissingDependencyError(TensorLakeError, ImportError):
    """This call needs an optional package, which is not installed."""


def outrun(
    table: str, attempts: int, left: str = "nothing was committed, try again later"
) -> ConcurrentWriteError:
    """Return the error of a writer that others were faster than, as often as it tried.

    Examples
    --------
    >>> outrun("/lake", 60)
    ConcurrentWriteError('other writers of /lake won 60 times in a row; nothing was committed, try again later')
    """
    return ConcurrentWriteError(f"other writers of {table} won {attempts} times in a row; {left}")


def storage_error(said: str, cause: BaseException) -> StorageError:
    """Return the error for what a store refused: of a kind of its own if this user may not do it.

    Examples
    --------
    >>> storage_error("x cannot be read", PermissionError(13, "Permission denied"))
    DeniedStorageError('x cannot be read')
    >>> storage_error("x cannot be read", OSError(5, "Input/output error"))
    StorageError('x cannot be read')
    """
    return (DeniedStorageError if is_denied(cause) else StorageError)(said)


def is_denied(error: BaseException) -> bool:
    """Whether an error tells that this user may not read or write something."""
    # deltalake has no type for it.
    return isinstance(error, PermissionError) or "Permission denied" in str(error)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``"; did you mean 'a' or 'b'?"`` for the names nearest to `name`, or an empty string.

    Examples
    --------
    >>> did_you_mean("fotos", ["photos", "masks"])
    "; did you mean 'photos'?"
    >>> did_you_mean("zzz", ["photos", "masks"])
    ''
    """
    near = get_close_matches(str(name), [n for n in known if isinstance(n, str)], n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(repr(n) for n in near)}?" if near else ""


def check_text(text: str, what: str, kind: type[TensorLakeError] = InvalidOptionError) -> None:
    """Raise an error if a text has half of a character, which no file, table or query engine takes.

    Parameters
    ----------
    text : str
        The text.
    what : str
        What it is, for the message.
    kind : type
        The class of the error.

    Examples
    --------
    >>> check_text("grün", "tag")
    >>> check_text("gr\\ud800n", "tag")
    Traceback (most recent call last):
    tensorlake_spark.errors.InvalidOptionError: tag 'gr\\ud800n' has half of a character, '\\ud800' at character 3; \
write all of it, or leave it out
    """
    found = None if text.isascii() else re.search("[\ud800-\udfff]", text)
    if found:
        raise kind(
            f"{what} {text!r:.200} has half of a character, {found[0]!r} at character {found.start() + 1}; "
            "write all of it, or leave it out"
        )


def check_flag(name: str, value: Any) -> bool:
    """Return an option that is True or False, as a bool; raise InvalidOptionError if it is something else.

    A text such as "no" is true to Python, so what it asks for would be the opposite of what is meant.

    Examples
    --------
    >>> check_flag("dry_run", True)
    True
    >>> check_flag("dry_run", "no")
    Traceback (most recent call last):
    tensorlake_spark.errors.InvalidOptionError: dry_run='no' is not True or False
    """
    kind = type(value)  # NumPy's bool by its name, as nothing here loads NumPy
    if kind is not bool and (kind.__module__, kind.__name__) != ("numpy", "bool"):
        raise InvalidOptionError(f"{name}={value!r:.80} is not True or False")
    return bool(value)


def is_iterable(value: Any) -> bool:
    """Whether a loop can run over a value; none is begun, for that of a loader starts threads.

    An array of NumPy without axes has the method for it, and raises when it is called.

    Examples
    --------
    >>> is_iterable(["a"]), is_iterable(5)
    (True, False)
    """
    return isinstance(value, Iterable) and getattr(value, "ndim", 1) != 0


def listed_columns(columns: Any) -> list[Any]:
    """Return what stands for names of columns as a list; raise InvalidOptionError if it is none.

    Examples
    --------
    >>> listed_columns(iter(["a", "b"]))
    ['a', 'b']
    >>> listed_columns("a")
    Traceback (most recent call last):
    tensorlake_spark.errors.InvalidOptionError: columns='a' is one text; give a list of names, such as ['a']
    """
    if isinstance(columns, str):
        raise InvalidOptionError(
            f"columns={columns!r:.80} is one text; give a list of names, such as [{columns!r:.80}]"
        )
    if not is_iterable(columns):
        raise InvalidOptionError(f"columns={columns!r:.80} is not a list of names")
    return [*columns]


def __getattr__(name: str) -> Any:
    if name != "AxisError":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    # It is an error of NumPy's too, and NumPy is loaded only when somebody asks for it.
    import numpy as np

    text = "The tensor has no such axis, or an axis is named twice. It is NumPy's AxisError too, and so a ValueError."
    kinds = (InvalidKeyError, np.exceptions.AxisError)
    found = type(name, kinds, {"__doc__": text, "__module__": __name__})
    return globals().setdefault(name, found)
