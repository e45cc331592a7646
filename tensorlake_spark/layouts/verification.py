"""Rows held against their checksums, many at a time, before anything of them is decoded."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tensorlake_spark.errors import CorruptDataError, FormatError
from tensorlake_spark.layouts.coding.chain import parted, unread
from tensorlake_spark.rows.binary_views import payloads
from tensorlake_spark.rows.checksum import corner_bytes, crc_head, crc_payload
from tensorlake_spark.rows.row import corners, numbers
from tensorlake_spark.tensor.spec import STORED_AXES, TensorSpec, dtype_name

Array = np.ndarray[Any, Any]

_FEW = 64  # texts that are sooner made than compared


class Payload(NamedTuple):
    """What a row holds.

    Attributes
    ----------
    codec, params : str; str or None
        The row's columns.
    index, values : buffers; `index` may be None
        The payload, where it lies.
    check : Check or None
        The checksum that it is not held against yet; None where it was found right.
    """

    codec: str
    params: str | None
    index: Any
    values: Any
    check: Check | None = None


class Check(NamedTuple):
    """What the checksum of a row is computed from, besides its payload, and what it has to be."""

    start: int
    corners: bytes
    crc: int
    is_upper: bool  # of the upper halves of ``split`` alone, which have a checksum of their own before them


def hold(row: Payload, spec: TensorSpec, lo: Array, hi: Array) -> None:
    """Hold a row against its checksum, unless that was done.

    Raises
    ------
    CorruptDataError
        If it fails; names tensor and box, whose corners are `lo` and `hi`.
    """
    if row.check is not None and not _is_right(row.check, row.index, row.values):
        raise _failed(spec, lo, hi)


def _is_right(check: Check, index: Any, values: Any) -> bool:
    if values is None:
        return False
    crc = check.crc
    if check.is_upper:  # the checksum of the row needs both columns
        crc, values = int.from_bytes(values[:4], "little"), memoryview(values)[4:]
    return crc_payload(check.start, index, values, check.corners) == crc


def _failed(spec: TensorSpec, lo: Array, hi: Array) -> CorruptDataError:
    return CorruptDataError(
        f"tensor {spec.id!r}, box {box_text(lo, hi)}: the row fails its checksum; "
        "restore the file from a backup, or an earlier version of the table"
    )


@dataclass(frozen=True)
class Payloads:
    """What some rows hold, column by column; see `Payload`."""

    codecs: list[Any]
    params: list[str | None]
    index: list[Any]
    values: list[Any]
    checks: list[Check | None]

    @property
    def _columns(self) -> tuple[list[Any], ...]:
        return self.codecs, self.params, self.index, self.values, self.checks

    def each(self) -> list[Payload]:
        """Return what each row holds."""
        return [Payload(*row) for row in zip(*self._columns, strict=True)]

    def take(self, rows: Sequence[int]) -> Payloads:
        """Return those of some of the rows."""
        return Payloads(*([column[i] for i in rows] for column in self._columns))

    @property
    def nbytes(self) -> int:
        """Bytes of all payloads."""
        return sum(map(len, self.values)) + sum(len(data) for data in self.index if data)


@contextmanager
def naming(spec: TensorSpec) -> Iterator[None]:
    """Put the tensor's name before what is said of its rows."""
    try:
        yield
    except CorruptDataError as error:
        raise CorruptDataError(f"tensor {spec.id!r}: {error}") from error


def boxes(batch: pa.RecordBatch, ndim: int) -> tuple[Array, Array]:
    """Return the boxes of a batch's rows as two int64 arrays of shape (rows, ndim).

    The part that has no columns comes from ``params``, held to its form: integers, one for every axis
    past the eighth.

    Raises
    ------
    CorruptDataError
        If a row does not say where its box lies.
    """
    stored = min(ndim, STORED_AXES)
    lo, hi = corners(batch, stored)
    if ndim == stored:
        return lo, hi
    out = np.empty((2, batch.num_rows, ndim), np.int64)
    out[0, :, :stored], out[1, :, :stored] = lo, hi
    for i, text in enumerate(_texts(batch.column("params"), range(batch.num_rows))):
        found = params_of(text)
        out[0, i, stored:] = integers(found.get("lo"), ndim - stored, "a lower corner")
        out[1, i, stored:] = integers(found.get("hi"), ndim - stored, "an upper corner")
    return out[0], out[1]


@lru_cache(maxsize=256)
def params_of(text: str | None) -> Mapping[str, Any]:
    """Return the parameters of a row.

    Raises
    ------
    CorruptDataError
        If they are no JSON object.

    Examples
    --------
    >>> params_of('{"order":[1,0]}'), params_of(None)
    ({'order': [1, 0]}, {})
    """
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise CorruptDataError(f"the parameters {text!r:.200} of a row are not JSON") from error
    if not isinstance(found, dict):
        raise CorruptDataError(f"the parameters {text!r:.200} of a row are no JSON object")
    return found


def integers(found: Any, count: int, what: str) -> list[int]:
    """Return a parameter that is a list of so many integers of 0 to 2**63 - 1.

    Raises
    ------
    CorruptDataError
        If it is anything else.

    Examples
    --------
    >>> integers([2, 0], 2, "a corner")
    [2, 0]
    """
    # JSON's true is an int to Python.
    if (
        not isinstance(found, list)
        or len(found) != count
        or any(type(n) is not int or not 0 <= n < 2**63 for n in found)
    ):
        raise CorruptDataError(
            f"{found!r:.200} in the parameters of a row is not {what}: {count} integers"
        )
    return found


def checked(
    batch: pa.RecordBatch,
    spec: TensorSpec,
    wanted: Sequence[int],
    lo: Array,
    hi: Array,
    codecs: Collection[str],
    later: bool = False,
) -> Payloads:
    """Return the payloads of the wanted rows, each held against its checksum and its tensor.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
        Data rows with the columns of a layout. Without ``index`` the upper halves of the codec ``split`` are
        held against the checksum of their own.
    spec : TensorSpec
        The tensor.
    wanted : sequence of int
        Which rows.
    lo, hi : int64 ndarray, shape (rows, ndim)
        Corners of all rows of the batch.
    codecs : collection of str
        Those that the layout knows.
    later : bool
        Whether the caller holds each row against its checksum, with `hold`: in the thread that decodes it, which then
        has its bytes at hand.

    Raises
    ------
    CorruptDataError
        If a checksum fails, or the row does not fit the tensor; names tensor and box.
    FormatError
        If the row has a codec that is none of `codecs`; names it, and what reads it.
    """
    if not len(wanted):
        return Payloads([], [], [], [], [])
    heads = [_texts(batch.column(name), wanted) for name in ("layout", "params", "dtype", "codec")]
    crcs = numbers(batch.column("crc"))[wanted].tolist()
    values = payloads(batch.column("values"), wanted)
    is_whole = "index" in batch.schema.names
    index = payloads(batch.column("index"), wanted) if is_whole else [None] * len(values)
    lo, hi = lo[wanted], hi[wanted]
    stored = min(spec.ndim, STORED_AXES)
    forms = corner_bytes(lo[:, :stored], hi[:, :stored])
    starts = {kind: crc_head(*kind) for kind in {*zip(*heads, strict=True)}}
    checks = [
        Check(starts[kind], form, crc, not is_whole and parted(str(kind[3]))[0] == "split")
        for kind, form, crc in zip(zip(*heads, strict=True), forms, crcs, strict=True)
    ]
    if not later:
        for i, what in enumerate(zip(checks, index, values, strict=True)):
            if not _is_right(*what):
                raise _failed(spec, lo[i], hi[i])
    inside = (lo < hi) & (lo >= 0) & (hi <= np.array(spec.shape, np.int64))
    fits: Array = np.asarray(np.all(inside, axis=1))
    ours = spec.layout, dtype_name(spec.dtype)
    if not fits.all() or any((layout, dtype) != ours for layout, _, dtype, _ in starts):
        for i, (layout, dtype, fit) in enumerate(
            zip(heads[0], heads[2], fits.tolist(), strict=True)
        ):
            if (layout, dtype) != ours or not fit:
                raise CorruptDataError(
                    f"tensor {spec.id!r}, box {box_text(lo[i], hi[i])}: the row ({layout}, {dtype}) does not "
                    f"fit the tensor's shape {spec.shape}, dtype {spec.dtype} and layout {spec.layout}"
                )
    for layout, _, _, codec in starts:
        if codec not in codecs:
            i = heads[3].index(codec)
            row = _row_text(batch, wanted[i])
            raise FormatError(
                f"tensor {spec.id!r}, {row}box {box_text(lo[i], hi[i])}: {unread(codec, layout)}"
            )
    left: list[Check | None] = [*checks] if later else [None] * len(checks)
    return Payloads(heads[3], heads[1], index, values, left)


def _row_text(batch: pa.RecordBatch, place: int) -> str:
    """Return which row it is by its ``seq``, where that was read."""
    if "seq" not in batch.schema.names:
        return ""
    return f"row {batch.column('seq')[place]}, "


def _texts(column: pa.Array, wanted: Sequence[int]) -> list[str | None]:
    """Return some texts of a column; in most batches all rows have the same."""
    try:
        if len(column) > _FEW and column[1:].equals(column[:-1]):
            return [column[0].as_py()] * len(wanted)
        texts = column.to_pylist()
    except UnicodeDecodeError as error:
        raise CorruptDataError(f"a text of a row is not UTF-8: {error.object!r:.200}") from error
    return [texts[i] for i in wanted]


def box_text(lo: Array, hi: Array) -> str:
    """Return a box as it is typed in a slice.

    Examples
    --------
    >>> box_text(np.array([0, 2]), np.array([4, 3]))
    '[0:4, 2:3]'
    """
    sides = zip(lo.tolist(), hi.tolist(), strict=True)
    return "[" + ", ".join(f"{a}:{b}" for a, b in sides) + "]"
