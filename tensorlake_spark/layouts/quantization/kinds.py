"""What a tensor's values become when they are stored: the user's choice as a value, and where it may be used."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from tensorlake_spark.errors import CorruptDataError, InvalidOptionError, did_you_mean
from tensorlake_spark.layouts.coding.chain import CASTS, argument_of, parted
from tensorlake_spark.tensor.spec import TensorSpec, dtype_of

BOUNDED = ("error", "relative")
"""Kinds that have a bound."""

KINDS = (*CASTS, "int8", "split", *BOUNDED)
"""How values may be quantised."""

SOURCES = ("float16", "bfloat16", "float32", "float64")
"""Dtypes whose values may be quantised."""

ROUNDED = (*CASTS, *BOUNDED)
"""Kinds that sparse layouts take: their values are rounded, and stored in the tensor's own dtype."""

DENSE = "ftsf"
"""The layout whose codecs have a step that quantises."""

KEY = "quantize"
"""Name in a tensor's `params`."""


@dataclass(frozen=True, slots=True)
class Quantization:
    """How the values of a tensor are quantised.

    Attributes
    ----------
    kind : str
        One of ``float16``, ``bfloat16``, ``float8_e4m3fn``, ``float8_e5m2``, ``int8``, ``split``, ``error`` and
        ``relative``.
    bound : float or None
        Of ``error``, by how much an element that is read may differ from what was written; of ``relative``, by
        which share of it. None for the other kinds.

    Examples
    --------
    >>> Quantization("error", 0.001)
    Quantization(kind='error', bound=0.001)
    """

    kind: str
    bound: float | None = None

    @property
    def step(self) -> float | None:
        """Of ``error``: what the stored integers count. None for the other kinds."""
        return 2 * self.bound if self.kind == "error" and self.bound is not None else None

    @property
    def codec_step(self) -> str:
        """The step of the codec that quantises, empty where the chain has none."""
        if self.kind in CASTS:
            return f"cast({self.kind})"
        if self.kind == "relative":
            return ""
        return f"error({self.bound!r})" if self.kind == "error" else self.kind

    def to_json(self) -> str | dict[str, float | None]:
        """Return the form that `quantize=` takes, and the metadata row has."""
        return {self.kind: self.bound} if self.kind in BOUNDED else self.kind

    def __str__(self) -> str:
        """Return it in words, for `explain` and messages."""
        if self.kind == "error":
            return f"quantised, every element within {self.bound!r}"
        if self.kind == "relative":
            return f"quantised, every element within {self.bound!r} of its own size"
        if self.kind == "int8":
            return "quantised as int8 with a scale for each row of the last axis"
        if self.kind == "split":
            return "split into bfloat16 and the rest, without loss"
        return f"quantised as {self.kind}"


def quantization_of(given: Any) -> Quantization | None:
    """Return what `quantize=` asks for; None where nothing was given.

    Parameters
    ----------
    given : str, mapping, Quantization or None
        The name of a kind; ``{"error": bound}`` or ``{"relative": bound}``, also as JSON; or ``"none"``, which
        takes a quantisation away.

    Raises
    ------
    InvalidOptionError
        If there is no such kind, or the bound is no positive finite number.

    Examples
    --------
    >>> quantization_of("int8"), quantization_of('{"error": 1e-3}')
    (Quantization(kind='int8', bound=None), Quantization(kind='error', bound=0.001))
    """
    if given is None or isinstance(given, Quantization):
        return given
    value = given
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise InvalidOptionError(
                f'quantize={given!r:.200} is not JSON ({error}); write it as {{"error": 0.001}}'
            ) from error
    if isinstance(value, Mapping):
        return _bounded(value)
    name = value if isinstance(value, str) else None
    if name == "none" or (name in KINDS and name not in BOUNDED):
        return Quantization(name)
    if name in BOUNDED:
        raise InvalidOptionError(
            f"quantize={value!r} is not complete: it needs a bound; write quantize={{{value!r}: 0.001}}"
        )
    raise InvalidOptionError(
        f"quantize={given!r:.200} is not a kind of quantisation{did_you_mean(str(value), KINDS)}; known are "
        f"{', '.join(KINDS[:-2])}, {{'error': bound}}, {{'relative': bound}}, and 'none'"
    )


def on_grid(known: Quantization) -> Quantization:
    """Return a quantisation of chunks that leaves values as they are which a sparse layout has rounded already.

    Of ``error`` a sparse layout rounds to multiples of a power of two, which need few bits. Chunks have steps of twice
    the bound: rounded to these too, values might be off by twice the bound. So chunks get the bound of that power.

    Examples
    --------
    >>> on_grid(Quantization("error", 0.3)), on_grid(Quantization("int8"))
    (Quantization(kind='error', bound=0.25), Quantization(kind='int8', bound=None))
    """
    if known.kind != "error" or known.bound is None:
        return known
    return Quantization("error", grid_step(known.bound) / 2)


def grid_step(bound: float) -> float:
    """Return the greatest power of two that is no more than twice a bound.

    Examples
    --------
    >>> grid_step(0.3)
    0.5
    """
    return math.ldexp(1.0, math.frexp(2 * bound)[1] - 1)


def agrees(known: Quantization | None, asked: Quantization | None) -> bool:
    """Whether a tensor is quantised as somebody asks for; also if its chunks were made of rounded elements.

    Examples
    --------
    >>> agrees(Quantization("error", 0.25), Quantization("error", 0.3)), agrees(None, Quantization("int8"))
    (True, False)
    """
    return known == asked or (asked is not None and known == on_grid(asked))


def quantization_of_codec(codec: str) -> Quantization | None:
    """Return how values are quantised by a codec, None if it has no step for that.

    Examples
    --------
    >>> quantization_of_codec("error(0.5)+zstd"), quantization_of_codec("zstd")
    (Quantization(kind='error', bound=0.5), None)
    """
    step, _ = parted(codec)
    if step.startswith("error"):
        return Quantization("error", float(argument_of(step)))
    return quantization_of((argument_of(step) if step.startswith("cast") else step) or None)


def _bounded(value: Mapping[Any, Any]) -> Quantization:
    if len(value) != 1:
        raise InvalidOptionError(
            f"quantize={dict(value)!r:.200} is not one bound; write {{'error': bound}} or {{'relative': bound}}"
        )
    [(kind, bound)] = value.items()
    if kind not in BOUNDED:
        raise InvalidOptionError(
            f"quantize={dict(value)!r:.200} is not a bound: {kind!r} is not one of "
            f"{', '.join(BOUNDED)}{did_you_mean(str(kind), BOUNDED)}"
        )
    if isinstance(bound, (bool, np.bool_)) or not isinstance(bound, Real):
        raise InvalidOptionError(
            f"the bound of quantize={{{kind!r}: {bound!r:.80}}} is not a number; give one above 0, such as 0.001"
        )
    try:
        number = float(bound)
    except OverflowError:  # an integer of hundreds of digits
        number = math.inf
    most = 1.0 if kind == "relative" else np.finfo(np.float64).max / 2
    if not (math.isfinite(number) and 0 < number < most):
        limit = f"below {most:.3g}"
        raise InvalidOptionError(
            f"the bound of quantize={{{kind!r}: {number!r}}} is not above 0 and {limit}; give one such as 0.001"
        )
    return Quantization(kind, number)


def check_quantization(
    quantization: Quantization, tensor_id: str, dtype: np.dtype[Any], layout: str, dense: bool
) -> None:
    """Raise InvalidOptionError if values of a dtype cannot be quantised so, or not in that layout.

    Raises
    ------
    MissingDependencyError
        If the dtype that is stored needs a package that is not installed.
    """
    given = quantization.to_json()
    if not dense and quantization.kind not in ROUNDED:
        why = "needs rows of the last axis" if quantization.kind == "int8" else "parts dense chunks"
        raise InvalidOptionError(
            f"quantize={given!r} is not for layout {layout}, which tensor {tensor_id!r} has: it {why}, and a sparse "
            f"layout rounds values one by one ({', '.join(ROUNDED)}); give one of these, layout='ftsf', or "
            "quantize='none'"
        )
    if dtype.name not in SOURCES:
        raise InvalidOptionError(
            f"quantize={given!r} is not for dtype {dtype}, which tensor {tensor_id!r} has: it takes "
            f"{', '.join(SOURCES)}; leave it out, or convert the values to one of these"
        )
    if quantization.kind == "split" and dtype != np.float32:
        raise InvalidOptionError(
            f"quantize='split' is not for dtype {dtype}, which tensor {tensor_id!r} has: it parts float32 in two "
            "halves; leave it out, or convert the values with .astype('float32')"
        )
    target = stored_dtype(quantization)
    if target is not None and target.itemsize >= dtype.itemsize:
        raise InvalidOptionError(
            f"quantize={given!r} is not smaller than dtype {dtype}, which tensor {tensor_id!r} has; leave it out"
        )


def stored_dtype(quantization: Quantization) -> np.dtype[Any] | None:
    """Return the dtype that a cast stores, None for the other kinds."""
    return dtype_of(quantization.kind) if quantization.kind in CASTS else None


def counted_dtype(quantization: Quantization | None, dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype by which the default block of a tensor is as large in the table as that of others.

    Examples
    --------
    >>> counted_dtype(Quantization("int8"), np.dtype("f4")), counted_dtype(None, np.dtype("f4"))
    (dtype('int8'), dtype('float32'))
    """
    if quantization is None:
        return dtype
    if quantization.kind in ("int8", "error"):  # integers of a bound have about a byte each
        return np.dtype(np.int8)
    return stored_dtype(quantization) or dtype


def quantization_in(spec: TensorSpec) -> Quantization | None:
    """Return how a tensor of a table is quantised, None where it is not.

    Raises
    ------
    CorruptDataError
        If its metadata row says what no writer writes.
    """
    found = spec.params.get(KEY)
    step, _ = parted(spec.codec)
    if found is None and not step:
        return None
    try:
        known = quantization_of(found)
    except InvalidOptionError as error:
        raise CorruptDataError(f"the metadata row of tensor {spec.id!r}: {error}") from error
    if known is None or (known.codec_step if spec.layout == DENSE else "") != step:
        raise CorruptDataError(
            f"the metadata row of tensor {spec.id!r} does not fit itself: codec {spec.codec!r:.200}, and "
            f"quantised as {found!r:.200}"
        )
    return known
