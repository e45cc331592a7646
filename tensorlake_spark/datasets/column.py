"""A column of a dataset: indexed by samples, and then into the sample."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from tensorlake_spark.datasets.changes.change_methods import ChangeMethods
from tensorlake_spark.datasets.samples.padding import blank_of, padded
from tensorlake_spark.datasets.samples.sample_reading import (
    decoded_samples,
    read_column,
    runs_of,
    values_of,
)
from tensorlake_spark.datasets.samples.sample_selection import select_samples
from tensorlake_spark.datasets.types.base import Tiled, Type
from tensorlake_spark.datasets.types.media.recordings import Video
from tensorlake_spark.datasets.types.nested import link_in
from tensorlake_spark.errors import (
    InvalidKeyError,
    InvalidKeyTypeError,
    InvalidSliceError,
    TensorLakeError,
)

Array = np.ndarray[Any, Any]


class Column:
    """A column of a dataset. Nothing is read before you index it.

    Attributes
    ----------
    name : str
        Its name, with ``/`` between groups.
    type : Type
        What it holds.
    """

    def __init__(self, table: ChangeMethods, name: str) -> None:
        self._table = table
        self.name = name
        self.type: Type = table.type_of(name)
        self._payload: Any = None

    def __repr__(self) -> str:
        return f"<Column {self.name!r}: {self.type}, {len(self)} samples>"

    def __len__(self) -> int:
        return len(self._table)

    def __getitem__(self, key: Any) -> Any:
        """Return one sample's value, or those of several: one array where the type stacks, else a list.

        With a tuple, what follows the first key is applied to the sample: ``column[5, 10:20]`` is
        ``column[5][10:20]``, and of a tiled sample only the tiles are read that it needs.
        """
        first, rest = (key[0], key[1:]) if isinstance(key, tuple) and key else (key, ())
        chosen = select_samples(first, len(self), f"column {self.name!r}")
        if isinstance(chosen, int):
            return self._one(chosen, rest)
        if not rest:
            array = self._stored(chosen)
            return values_of(self._table.parts, self.name, array, chosen)
        return [self._one(position, rest) for position in chosen.tolist()]

    def __setitem__(self, key: Any, value: Any) -> None:
        """Give samples other values, in one commit: one for each, or one for all, as `Dataset.update` takes them.

        After ``ds.strict = False`` a sample past the end makes the dataset grow, with nulls.

        Raises
        ------
        InvalidKeyError
            If a sample is out of bounds.
        InvalidSampleError
            If a value does not fit.
        ConcurrentWriteError
            If another writer changed one of these samples since the version that is shown.
        """
        self._table._assign(self.name, key, value)

    def __iter__(self) -> Iterator[Any]:
        parts = self._table.parts
        for positions in runs_of(parts, [self.name], np.arange(len(self))):
            array = read_column(parts, self.name, positions)
            yield from values_of(parts, self.name, array, positions, stack=False)

    def _stored(self, positions: Array) -> pa.Array:
        return read_column(self._table.parts, self.name, positions)

    def _one(self, position: int, rest: tuple[Any, ...]) -> Any:
        tensor = self._table.parts.known_tensor(self.name, position)
        if tensor is not None:
            return self._part(tensor, position, rest)
        value = self._value(np.array([position], np.int64))
        if isinstance(value, Tiled):
            return self._part(self._table.parts.tensor(self.name, position, value), position, rest)
        if not rest or value is None:
            return value
        try:
            return value[rest if len(rest) > 1 else rest[0]]
        except TypeError as error:
            raise InvalidKeyTypeError(
                f"a sample of column {self.name!r} is {type(value).__name__}, which takes no {rest!r:.80}: {error}"
            ) from error
        except ValueError as error:  # a step of zero, as the tiles of a large sample say it
            if isinstance(error, TensorLakeError):  # of a video
                raise
            raise InvalidSliceError(
                f"sample {position} of column {self.name!r}: {rest!r:.80}: {error}"
            ) from error
        except (IndexError, OverflowError) as error:  # as the tiles of a large sample say it
            # NumPy says of a number of more than 64 bits that it is none.
            wholes = [int(k) for k in rest if isinstance(k, (int, np.integer))]
            huge = next((k for k in wholes if abs(k) >= 1 << 63), None)
            length = value.shape if hasattr(value, "shape") else f"({len(value)},)"
            said = (
                error if huge is None else f"index {huge} is out of bounds for its shape {length}"
            )
            raise InvalidKeyError(f"sample {position} of column {self.name!r}: {said}") from error

    def _part(self, tensor: Any, position: int, rest: tuple[Any, ...]) -> Any:
        """Return a part of a sample that is kept as tiles."""
        try:
            return tensor[rest or ...]
        except (InvalidKeyError, InvalidSliceError) as error:  # which name no sample
            raise type(error)(f"sample {position} of column {self.name!r}: {error}") from error

    def _value(self, position: Array) -> Any:
        """Return one sample's value; of a large one what is known of it."""
        if isinstance(self.type, Video):
            return self._table.parts.videos(self.name, position)[0]
        array = self._stored(position)
        if link_in(self.type) is not None:
            return values_of(self._table.parts, self.name, array, position)[0]
        return decoded_samples(self.type, array, self.name, position)[0]

    def padded(self, key: Any = slice(None), fill: Any = 0) -> Array:
        """Return ragged samples as one array, each filled up at the end of its axes to the longest.

        Parameters
        ----------
        key : slice, or sequence or array of int or bool
            Which samples, by default all.
        fill : scalar
            What stands where a sample has nothing.

        Raises
        ------
        InvalidSampleError
            If samples have different ranks or dtypes, or if all are null and the type allows any rank.

        Examples
        --------
        >>> import tempfile, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"x": tl.types.Tensor("int32", (None,))})
        >>> ds.extend({"x": [[1, 2], [], [3]]})
        >>> ds["x"].padded(fill=-1).tolist()
        [[1, 2], [-1, -1], [3, -1]]
        """
        chosen = np.atleast_1d(select_samples(key, len(self), f"column {self.name!r}"))
        array = self._stored(chosen)
        if not self.type.stacks or pa.types.is_struct(array.type):
            values = values_of(self._table.parts, self.name, array, chosen, stack=False)
            return padded(values, fill, blank_of(self.type))
        numbers = self.type.stack(array.drop_null())  # one by one they would be of Python's types
        out = padded([None] * len(array), fill, (numbers.dtype, ()))
        out[np.asarray(array.is_valid())] = numbers
        return out

    def encoded(self, position: int) -> bytes | None:
        """Return the bytes of one sample as they are stored, None where it has none.

        Raises
        ------
        InvalidKeyTypeError
            If the column has no bytes, as a number.

        Examples
        --------
        >>> import tempfile, numpy as np, tensorlake_spark as tl
        >>> ds = tl.dataset(tempfile.mkdtemp(), {"image": tl.types.Image("png")})
        >>> ds.append({"image": np.zeros((2, 3, 3), "u1")})
        >>> ds["image"].encoded(0)[:4]
        b'\x89PNG'
        """
        chosen = select_samples(position, len(self), f"column {self.name!r}")
        if not isinstance(chosen, int):
            raise InvalidKeyTypeError(f"{position!r:.80} is not the position of one sample")
        parts = self._table.parts
        stored, row = parts.stored, chosen
        if parts.is_apart(self.name):
            table = parts.table_of(self.name)
            row = int(parts.rows_of(self.name, np.array([chosen]))[0])
            if table is None or row < 0:
                return None
            stored = table
        if self._payload is None:
            column = parts.path_of(self.name)
            leaves = [leaf for leaf in stored.under([column]) if leaf.is_payload]
            if not leaves or leaves[0].repeated:
                raise InvalidKeyTypeError(
                    f"column {self.name!r} is {self.type} and has no encoded bytes; index it"
                )
            self._payload = leaves[0]
        found = stored.value(row, self._payload)
        return None if found is None else bytes(found)

    def batches(self, views: bool = True) -> Iterator[pa.Array]:
        """Yield the whole column as it is stored, as Arrow arrays of some megabytes.

        Parameters
        ----------
        views : bool
            Whether bytes may be of type ``binary_view``, which point into mapped files and are not copied.
        """
        parts = self._table.parts
        for positions in runs_of(parts, [self.name], np.arange(len(self))):
            yield read_column(parts, self.name, positions, views)
