"""The options of a write, and what it leaves open: layout, blocks and codec of a new tensor."""

from __future__ import annotations

import logging
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError
from tensorlake_spark.indexing.coords import check_rule
from tensorlake_spark.layouts import Layout, layout_of
from tensorlake_spark.layouts.coding import pco
from tensorlake_spark.layouts.coding.chain import TRANSPOSE, argument_of, is_known, parted
from tensorlake_spark.layouts.coding.codec_choice import BY_TRYING
from tensorlake_spark.layouts.ftsf import paper_block
from tensorlake_spark.layouts.quantization import bit_rounding, quantized_block
from tensorlake_spark.layouts.quantization.kinds import (
    KEY,
    ROUNDED,
    Quantization,
    check_quantization,
    counted_dtype,
    on_grid,
    quantization_of,
    stored_dtype,
)
from tensorlake_spark.tensor.label_input import check_labels
from tensorlake_spark.tensor.spec import TensorSpec, check_axes, check_id, fill_bytes, native
from tensorlake_spark.writing.app_transaction import check_transaction
from tensorlake_spark.writing.source import Source, native_dtype

logger = logging.getLogger("tensorlake_spark")

FEATURES = "tensorlake.features"
"""The attribute by which a tensor is known as part of a table of features, which are stored as chunks."""

DENSE_FROM = 0.1
"""Share of non-zeros from which ``layout="auto"`` stores chunks (Delta Tensor, section IV-B)."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How a tensor is written; see `TensorLake.write`, whose arguments these are.

    Attributes
    ----------
    chosen : TensorSpec, optional
        What `new_spec` made of the other options and a source, where it was asked already: it tries the
        density and the codecs on the data, and logs why.
    quantize : Quantization, optional
        Given as `quantization_of` takes it. Its kind ``none`` stands for no quantisation.
    """

    layout: str = "auto"
    block_shape: Sequence[int] | None = None
    chunk_rank: int | None = None
    codec: str = "auto"
    fill_value: Any = 0
    axes: Sequence[str] | None = None
    attrs: Mapping[str, Any] = field(default_factory=dict)
    transaction: tuple[str, int] | None = None
    order: Sequence[int] | None = None
    row_axes: Sequence[int] | None = None
    duplicates: str = "error"
    threshold: float = DENSE_FROM
    labels: Mapping[str, Any] = field(default_factory=dict)
    chosen: TensorSpec | None = None
    quantize: Any = None

    def __post_init__(self) -> None:
        """Raise InvalidOptionError if a value has a type that no layout accepts."""
        check_transaction(self.transaction)
        object.__setattr__(self, "quantize", quantization_of(self.quantize))
        if not isinstance(self.codec, str):
            raise InvalidOptionError(
                f"unknown codec {self.codec!r}; give the name of a codec, or 'auto' or 'smallest'"
            )
        if self.chunk_rank is not None and not isinstance(self.chunk_rank, Integral):
            raise InvalidOptionError(
                f"chunk_rank={self.chunk_rank!r} is not a whole number; it says how many last axes stay whole"
            )
        for name in ("attrs", "labels"):
            check_mapping(name, getattr(self, name))
        if not isinstance(self.threshold, Real) or not 0 <= self.threshold <= 1:
            raise InvalidOptionError(f"threshold {self.threshold!r} is not a share between 0 and 1")

    @property
    def quantization(self) -> Quantization | None:
        """How values are quantised, None if they are not."""
        known: Quantization | None = self.quantize
        return None if known is None or known.kind == "none" else known


def check_mapping(name: str, value: Any) -> None:
    """Raise InvalidOptionError unless an argument is a mapping."""
    if not isinstance(value, Mapping):
        raise InvalidOptionError(
            f"{name}={value!r:.100} is not a mapping; give a dict of names and values"
        )


MOST_CELLS = 1 << 32
"""Cells of a tensor given by its elements, up to which ``"auto"`` makes chunks of it to quantise: each is looked at."""


def auto_layout(
    density: float,
    options: WriteOptions,
    is_filled: bool,
    by_elements: bool = False,
    size: int = 0,
) -> tuple[str, str]:
    """Return the layout that ``"auto"`` stands for, and why: dense if enough elements are not zero, else blocks.

    The share is that of the paper (Delta Tensor, section IV-B): 10 %, or `WriteOptions.threshold`.

    Parameters
    ----------
    density : float
        Share of the elements that are not zero.
    options : WriteOptions
        What the writer asked for.
    is_filled : bool
        Whether the fill value is another one than zero.
    by_elements : bool
        Whether the elements are given one by one, as cells or as a `SparseTensor`: floats in fewer bits do not make
        chunks of them, nor does anything of more than `MOST_CELLS`.
    size : int
        Elements of the tensor.

    Examples
    --------
    >>> auto_layout(0.1, WriteOptions(), False)[0], auto_layout(0.09, WriteOptions(), False)[0]
    ('ftsf', 'bsgs')
    """
    if options.chunk_rank is not None:
        return "ftsf", "chunk_rank is an option of dense chunks"
    if FEATURES in options.attrs:
        return "ftsf", "features are chunks"
    known = options.quantization
    has_elements = by_elements and (known is None or known.kind in ROUNDED or size > MOST_CELLS)
    if known is not None and not has_elements:
        return "ftsf", "quantize stores chunks in fewer bits than it does elements"
    if is_filled:
        return "ftsf", f"sparse layouts leave out zeros, not {options.fill_value!r}"
    if density >= options.threshold:
        reason = f"{density:.3g} of its elements are not zero, at least {options.threshold:g}"
        return "ftsf", reason
    return "bsgs", f"{density:.3g} of its elements are not zero, below {options.threshold:g}"


def choose_layout(tensor_id: str, source: Source, options: WriteOptions, fill: bytes) -> str:
    """Return the layout of a tensor that is written afresh; what ``"auto"`` stands for is logged."""
    if not isinstance(options.layout, str) or options.layout != "auto":
        return options.layout  # who looks it up refuses what is no name
    by_elements = bool(getattr(source, "by_elements", False))
    size = math.prod(source.shape)
    name, reason = auto_layout(source.density(), options, any(fill), by_elements, size)
    tell_layout(tensor_id, name, reason)
    return name


def tell_layout(tensor_id: str, name: str, reason: str) -> None:
    """Log which layout was chosen for a tensor, and why."""
    logger.info("tensor %r: layout %s, because %s", tensor_id, name, reason)


def new_spec(tensor_id: str, source: Source, options: WriteOptions) -> TensorSpec:
    """Return the spec of a new tensor; choose what the caller left open.

    Raises
    ------
    InvalidTensorError, UnsupportedDtypeError
        If the id, shape, dtype, block shape or axis names are not valid.
    InvalidOptionError
        If the layout or the codec is unknown, or an option is not one of the layout.
    """
    if options.chosen is not None:
        return options.chosen
    dtype = native_dtype(source.dtype)
    filled = fill_bytes(options.fill_value, dtype)
    layout = layout_of(choose_layout(tensor_id, source, options, filled))
    check_options(layout, options, dtype, any(filled))
    layout.check_tensor(source.shape, dtype)
    block = _block(source, options, layout, dtype)
    params = layout.choose_params(len(source.shape), options.order, options.row_axes)
    if options.duplicates != "error":
        params = {**params, "duplicates": options.duplicates}
    spec = TensorSpec(
        id=check_id(tensor_id),
        shape=source.shape,
        dtype=dtype,
        layout=layout.name,
        block_shape=block,
        fill=filled,
        axes=None if options.axes is None else check_axes(options.axes, len(source.shape)),
        attrs=options.attrs,
        params=params,
        labels=check_labels(options.labels, options.axes, source.shape),
    )
    quantization = _quantization(spec, source, options, layout)
    if quantization is not None:
        spec = replace(spec, params={**spec.params, KEY: quantization.to_json()})
    codec = _codec(spec, source, options, layout, quantization)
    logger.debug("tensor %r: layout %s, block %s, codec %s", tensor_id, layout.name, block, codec)
    return replace(spec, codec=codec)


def _block(
    source: Source, options: WriteOptions, layout: Layout, dtype: np.dtype[Any]
) -> tuple[int, ...]:
    """Return the block shape that the caller gave, or the layout's own."""
    if options.block_shape is not None:
        block = checked_block(options.block_shape)
        if len(block) != len(source.shape):
            raise InvalidTensorError(
                f"block shape {block} does not fit shape {source.shape}: one length for every axis"
            )
        return block
    if options.chunk_rank is not None:
        return paper_block(source.shape, options.chunk_rank)
    if layout.is_sparse:
        return layout.default_block(source.shape, dtype, source.density())
    return layout.default_block(source.shape, counted_dtype(options.quantization, dtype), 1)


def _quantization(
    spec: TensorSpec, source: Source, options: WriteOptions, layout: Layout
) -> Quantization | None:
    """Return how values are quantised, after it was held against the tensor."""
    quantization = options.quantization
    if quantization is None:
        return None
    if getattr(source, "quantization", None) == quantization:
        quantization = _kept(quantization, spec.id, source, layout)
    check_quantization(quantization, spec.id, spec.dtype, layout.name, not layout.is_sparse)
    if not layout.is_sparse and not quantized_block.keeps_fill(spec.fill_value, quantization):
        raise InvalidOptionError(
            f"fill_value={options.fill_value!r} of tensor {spec.id!r} would be read as another value with "
            f"quantize={quantization.to_json()!r}; use fill_value=0, or quantise without loss ('split')"
        )
    return quantization


def _codec(
    spec: TensorSpec,
    source: Source,
    options: WriteOptions,
    layout: Layout,
    quantization: Quantization | None,
) -> str:
    """Return the codec that the caller gave, or the one that is best on a sample, after the step that quantises."""
    if options.codec not in BY_TRYING:
        codec = named_codec(layout, options.codec)
        check_codec_dtype(codec, _coded_dtype(spec.dtype, quantization), f"tensor {spec.id!r}")
    elif layout.is_sparse:
        codec = "zstd"
    else:
        choose = layout.choose_codec if options.codec == "auto" else layout.smallest_codec
        codec = choose(_stored_sample(source.sample(spec.block_shape), quantization))
    step = "" if quantization is None or layout.is_sparse else quantization.codec_step
    return f"{step}+{codec}" if step else codec


def _kept(known: Quantization, tensor_id: str, source: Source, layout: Layout) -> Quantization:
    """Return how values are quantised that are so already: a bound holds if they are rounded once.

    Raises
    ------
    InvalidOptionError
        If values of chunks would be rounded to the other grid that sparse layouts have.
    """
    by_elements = bool(getattr(source, "by_elements", False))
    if layout.is_sparse == by_elements or on_grid(known) == known:
        return known
    if layout.is_sparse:
        raise InvalidOptionError(
            f"chunks of tensor {tensor_id!r} have quantize={known.to_json()!r}, and layout {layout.name!r} would round "
            "their values once more, past the bound; give quantize='none', which stores them as they are read"
        )
    return on_grid(known)


def named_codec(layout: Layout, name: str) -> str:
    """Return a codec of a layout if a user may name it.

    Raises
    ------
    InvalidOptionError
        If the layout has no such codec, or it has a step that quantises.
    """
    step, inner = parted(name)
    if not step or not is_known(name):
        return layout.check_codec(name)
    argument = argument_of(step)
    given: Any = argument if step.startswith("cast") else step
    if step.startswith("error"):
        given = {"error": float(argument)}
    raise InvalidOptionError(
        f"codec {name!r} is not for a writer to name: its step {step} quantises; give quantize={given!r} and "
        f"codec={inner!r}"
    )


def check_names(options: WriteOptions) -> None:
    """Raise InvalidOptionError if the layout or the codec is none that there is; no tensor is looked at.

    Examples
    --------
    >>> check_names(WriteOptions(layout="auto", codec="shuffle+zstd"))
    """
    layout = layout_of(
        "ftsf" if options.layout == "auto" else options.layout
    )  # which has all codecs
    if options.codec not in BY_TRYING:
        named_codec(layout, options.codec)
    if options.block_shape is not None and min(checked_block(options.block_shape), default=1) < 1:
        raise InvalidOptionError(
            f"block shape {tuple(options.block_shape)} has a length below 1; give one of at least 1 for every axis"
        )


def check_codec_dtype(codec: str, dtype: np.dtype[Any], owner: str) -> None:
    """Raise an error, before anything is encoded, if a codec cannot code elements of a dtype here.

    Parameters
    ----------
    codec : str
        As `named_codec` returned it.
    dtype : numpy.dtype
        Of the elements that are coded.
    owner : str
        What has it, for the message.

    Raises
    ------
    InvalidOptionError
        If the codec has no form for the dtype.
    MissingDependencyError
        If the codec needs a package that is not installed.
    """
    if codec.removeprefix(TRANSPOSE) == "pco":
        pco.check_dtype(dtype, owner)


def _coded_dtype(dtype: np.dtype[Any], quantization: Quantization | None) -> np.dtype[Any]:
    """Return the dtype of what a codec codes."""
    if quantization is None or not quantization.codec_step:
        return dtype
    return stored_dtype(quantization) or np.dtype(np.int32)  # the other kinds store integers


def _stored_sample(sample: Any, quantization: Quantization | None) -> Any:
    """Return what a codec codes of a sample."""
    if quantization is None:
        return sample
    values = np.ascontiguousarray(native(np.asarray(sample))).reshape(np.shape(sample))
    if quantization.codec_step:
        return quantized_block.sample_of(values, quantization.codec_step)
    return bit_rounding.within(values, quantization.bound or 0.5)


def integers(text: str, name: str) -> tuple[int, ...]:
    """Return the whole numbers that an option lists as text, with or without brackets around them.

    Raises
    ------
    InvalidOptionError
        If one is not a whole number; the message has `name` and the text.

    Examples
    --------
    >>> integers("1,3,256", "--shape"), integers("(24,)", "--shape")
    ((1, 3, 256), (24,))
    """
    try:
        return tuple(int(part) for part in text.strip("()[] ").split(",") if part.strip())
    except ValueError:
        raise InvalidOptionError(
            f"{name}={text!r} is not a list of integers such as 1,3,256,1024"
        ) from None


def checked_block(lengths: Any) -> tuple[int, ...]:
    """Return a block shape as ints, or raise InvalidTensorError."""
    try:
        return tuple(operator.index(n) for n in lengths)
    except TypeError:
        raise InvalidTensorError(
            f"block shape {lengths!r} is not a sequence of whole numbers, one length for every axis"
        ) from None


def check_options(
    layout: Layout, options: WriteOptions, dtype: np.dtype[Any], filled: bool
) -> None:
    """Raise InvalidOptionError if an option does not go with the layout."""
    if options.block_shape is not None and options.chunk_rank is not None:
        raise InvalidOptionError("block_shape and chunk_rank exclude each other; give one of them")
    check_rule(options.duplicates, dtype)
    wrong = {
        "chunk_rank": options.chunk_rank is not None and layout.name != "ftsf",
        "block_shape": options.block_shape is not None and not layout.has_blocks,
        "duplicates": options.duplicates != "error" and not layout.is_sparse,
        "fill_value": filled and layout.is_sparse,
    }
    for name, is_wrong in wrong.items():
        if is_wrong:
            raise InvalidOptionError(f"layout {layout.name} has no {name}")
