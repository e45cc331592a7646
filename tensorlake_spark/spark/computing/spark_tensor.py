"""A stored tensor that Spark computes on: the methods of `TensorRef` that compute, done by executors."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from tensorlake_spark.computing.fold import Fold
from tensorlake_spark.computing.mapping import Mapped
from tensorlake_spark.computing.methods import Computing
from tensorlake_spark.computing.operand import Stored
from tensorlake_spark.computing.writing_results import write_result
from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import (
    InvalidTensorError,
    UnsupportedDtypeError,
    UnsupportedFunctionError,
)
from tensorlake_spark.indexing import ReadPlan, parse_key, select
from tensorlake_spark.lake.ref import TensorRef
from tensorlake_spark.spark.cluster.arguments import (
    ANY_KEY,
    INTEGER,
    MAPPING,
    NOTHING,
    PATH,
    SESSION,
    TEXT,
    takes,
)
from tensorlake_spark.spark.cluster.s3a import completed, settings_of_session
from tensorlake_spark.spark.computing import streaming, tree
from tensorlake_spark.writing.source import Source

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@takes(
    session=SESSION,
    uri=PATH,
    id=TEXT,
    slice=ANY_KEY | NOTHING,
    version=INTEGER | TEXT | NOTHING,
    storage_options=MAPPING | NOTHING,
)
def compute(
    session: SparkSession,
    uri: str | os.PathLike[str],
    id: str,  # noqa: A002 -- as the option of format("tensor")
    slice: Any = None,  # noqa: A002
    version: int | str | None = None,
    storage_options: Mapping[str, str] | None = None,
) -> SparkTensor:
    """Return a stored tensor, or a slice of it, whose methods are computed by the executors of a session.

    It reads nothing but metadata; its methods read only the rows that the slice overlaps.

    Parameters
    ----------
    session : SparkSession
        Its executors reach the lake under the same path or URL as the driver.
    uri : str or path
        The lake.
    id : str
        The tensor.
    slice : object, optional
        The part to compute on, as a NumPy key or its text. By default all of it.
    version : int or str, optional
        A version of the table, or a tag. By default the newest.
    storage_options : mapping of str to str, optional
        As for `tensorlake_spark.open`. What they leave open, the session's settings of S3A say.

    Raises
    ------
    TableNotFoundError, TensorNotFoundError
        If there is no such lake or tensor.
    InvalidKeyError, InvalidSliceError
        If the slice does not fit the tensor.

    Examples
    --------
    ::

        photos = compute(spark, "s3://bucket/lake", "photos", "0:1000")
        photos.mean(axis=(0, 2, 3))            # an array
        photos.map(np.sqrt, into="roots")      # a tensor of the lake
    """
    store = completed(dict(storage_options or {}), settings_of_session(session), os.fspath(uri))
    snapshot = Snapshot.open(Storage(os.fspath(uri), store), version)
    meta = catalog.get(snapshot, id)
    key = parse_key(slice, meta.spec.axes) if isinstance(slice, str) else slice
    selection = select(... if key is None else key, meta.spec.shape)
    return SparkTensor(session, Stored(snapshot, meta, selection))


class SparkTensor(Computing, NDArrayOperatorsMixin):
    """A stored tensor, or a slice of it, at one version. `compute` makes it.

    Tasks read rows and send partial results, which other tasks combine in a tree. The driver gets the last one. What
    is computed element by element, with ``into="id"``, tasks write to the lake, and the driver commits.
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, session: SparkSession, stored: Stored) -> None:
        self._session = session
        self._of = stored

    @property
    def id(self) -> str:
        """Name of the tensor in the lake."""
        return self._of.meta.spec.id

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis of the slice."""
        return self._of.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type, in the machine's byte order."""
        return self._of.dtype

    @property
    def nnz(self) -> int | None:
        """Number of stored elements, None where only reading would tell."""
        return self._of.known_nnz

    @property
    def version(self) -> int:
        """Version of the table."""
        return self._of.snapshot.version

    def explain(self) -> ReadPlan:
        """Return what the tasks read and skip. Print it to see it."""
        return self._of.plan()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        raise UnsupportedFunctionError(
            f"a tensor that Spark computes on does not become an array; read it: {self._in_python}"
        )

    def __getitem__(self, key: Any) -> Any:
        raise UnsupportedFunctionError(
            "a tensor that Spark computes on is not indexed; give compute(...) the slice to compute on, or read it: "
            f"{self._in_python}"
        )

    def __bool__(self) -> bool:
        raise InvalidTensorError(
            f"the truth of tensor {self.id!r} of shape {self.shape} is ambiguous; use x.any() or x.all()"
        )

    @property
    def _in_python(self) -> str:
        """What reads the tensor without Spark, for messages."""
        return f"tl.open({self._of.snapshot.storage.uri!r})[{self.id!r}][...]"

    @property
    def _stored(self) -> Stored:
        return self._of

    def _folded(self, fold: Fold[Any], stored: Stored) -> Any:
        return tree.compute(self._session, fold, stored)

    def _gathered(self, mapped: Mapped) -> Any:
        # As of np.frompyfunc, whose function does not even travel to tasks.
        if mapped.dtype.kind == "O":
            raise UnsupportedDtypeError(
                f"{mapped.ufunc.__name__} gives Python objects, which tasks do not send; take ufuncs of NumPy or "
                f"SciPy, or read the tensor: tl.open({self._of.snapshot.storage.uri!r})[{self.id!r}][...]"
            )
        return tree.gather(self._session, mapped)

    def _written(self, tensor_id: str, source: Source, layout: str) -> TensorRef:
        if isinstance(source, Mapped):
            after = streaming.stream(
                self._session, source, self._of.snapshot.storage, tensor_id, layout
            )
        else:
            after = write_result(self._of.snapshot, tensor_id, source, layout)
        return TensorRef(after, catalog.get(after, tensor_id))

    def __repr__(self) -> str:
        return f"SparkTensor({self.id!r}, shape={self.shape}, dtype={self.dtype}, version={self.version})"
