"""TensorView: a part of a stored tensor that is read when it is needed, and written through to the lake."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from tensorlake_spark.computing.composing import compose
from tensorlake_spark.computing.methods import Computing
from tensorlake_spark.computing.operand import Stored
from tensorlake_spark.indexing import ReadPlan
from tensorlake_spark.layouts import AnySelection
from tensorlake_spark.reading.conversions import Conversions
from tensorlake_spark.writing.source import Source


class Owner(Protocol):
    """What a view is of: `TensorRef`."""

    @property
    def id(self) -> str:
        """Name of the tensor."""

    def _read(self, selection: AnySelection) -> Any: ...
    def _assign(self, selection: AnySelection, values: Any) -> None: ...
    def _selected(self, selection: AnySelection) -> Stored: ...
    def _written(self, tensor_id: str, source: Source, layout: str) -> Any: ...


class TensorView(Conversions, Computing, NDArrayOperatorsMixin):
    """A part of a stored tensor. It reads nothing before you index it or compute with it.

    ``view[key]`` reads, ``view[key] = values`` writes to the lake, and ``view.view[key]`` is a part of it. Operators,
    ufuncs and functions of NumPy compute region by region and return what is in memory then.

    A view shows the version of the reference that it is of. What other writers change is not seen; what is assigned
    through either is seen through both. If another writer changed the tensor, an assignment raises
    ConcurrentWriteError.

    Examples
    --------
    >>> import tempfile, numpy as np, tensorlake_spark as tl
    >>> lake = tl.open(tempfile.mkdtemp())
    >>> ref = lake.write("x", np.arange(12).reshape(3, 4))
    >>> view = ref.view[1:, ::2]
    >>> view
    TensorView('x', shape=(2, 2), dtype=int64, version=1)
    >>> view[0].tolist(), (view > 6).tolist(), view.sum()
    ([4, 6], [[False, False], [True, True]], np.int64(28))
    >>> view.view[1][...] = 0
    >>> ref[2].tolist()
    [0, 9, 0, 11]
    """

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, owner: Owner, selection: AnySelection) -> None:
        self._owner = owner
        self._selection = selection

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""
        return self._selection.result_shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements, stored or not."""
        return self._selection.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type, in the machine's byte order."""
        return self._stored.dtype

    @property
    def nnz(self) -> int | None:
        """Number of stored elements; None if only reading would tell: of a part, or where duplicates are combined."""
        return self._stored.known_nnz

    @property
    def version(self) -> int:
        """Version of the table that the view shows."""
        return self._stored.snapshot.version

    @property
    def view(self) -> Composer:
        """A part of this view: ``view.view[key]``."""
        return Composer(self._owner, self._selection)

    def explain(self) -> ReadPlan:
        """Return what reading the view, or computing with all of it, reads and skips. Print it to see it."""
        return self._stored.plan()

    def __getitem__(self, key: Any) -> Any:
        return self._owner._read(compose(self._selection, key))

    def __setitem__(self, key: Any, values: Any) -> None:
        self._owner._assign(
            compose(self._selection, key),
            np.asarray(values) if isinstance(values, TensorView) else values,
        )

    @property
    def _stored(self) -> Stored:
        return self._owner._selected(self._selection)

    def _written(self, tensor_id: str, source: Source, layout: str) -> Any:
        return self._owner._written(tensor_id, source, layout)

    def __repr__(self) -> str:
        return f"TensorView({self._owner.id!r}, shape={self.shape}, dtype={self.dtype}, version={self.version})"


class Composer(TensorView):
    """A view whose square brackets give a part of it: ``ref.view[key]``. All else is as of the view itself."""

    def __getitem__(self, key: Any) -> TensorView:
        return TensorView(self._owner, compose(self._selection, key))
