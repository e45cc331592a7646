"""Products of tensors whose axes have labels, one of them stored: einsum, and matrix products of stacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorlake_spark.computing.fold import Fold
from tensorlake_spark.computing.operand import Stored
from tensorlake_spark.computing.operations.products.array_contractions import Contraction
from tensorlake_spark.computing.operations.products.sparse_contractions import SparseContraction
from tensorlake_spark.computing.operations.products.stored_contractions import (
    StoredContraction,
    is_small,
    nbytes_of,
)
from tensorlake_spark.computing.operations.products.sums_of_products import free
from tensorlake_spark.errors import InvalidOptionError, UnsupportedFunctionError
from tensorlake_spark.indexing.coords import check_shape
from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.ops.numpy_arguments import dtype_of_product
from tensorlake_spark.ops.products.contraction import Label, cast, operand, same_lengths
from tensorlake_spark.ops.products.einsum import contracted, diagonals, parse
from tensorlake_spark.ops.products.product_labels import Labels, inner_labels, matmul_labels
from tensorlake_spark.tensor.sparse import SparseTensor


@dataclass(frozen=True, eq=False)
class Product:
    """How a product is computed.

    Attributes
    ----------
    number : int
        Which operand is folded.
    stored : Stored
        What of it.
    fold : Fold
        What gives the product.
    order : tuple of int
        Axes of what the fold gives, in their order in the product.
    """

    number: int
    stored: Stored
    fold: Fold[Any]
    order: tuple[int, ...]


def einsum(text: str, operands: Sequence[Any]) -> Product:
    """Return how `numpy.einsum` of operands is computed: `Stored`, arrays and sparse tensors.

    Parameters
    ----------
    text : str
        Subscripts.
    operands : sequence
        One of them `Stored` at least.

    Raises
    ------
    InvalidOptionError
        For subscripts that make no sense, or do not fit.
    InvalidTensorError
        For axes of one label that differ in length.
    UnsupportedFunctionError
        If a stored tensor that is too large to be read at once would be needed whole.
    """
    tensors = [x if isinstance(x, Stored) else operand(x) for x in operands]
    labels, out = parse(text, [len(x.shape) for x in tensors])
    return _product(f"np.einsum({text!r})", tensors, labels, out)


def matmul(a: Any, b: Any) -> Product:
    """Return how `numpy.matmul` is computed; axes before the last two are stacks of matrices.

    Raises
    ------
    InvalidTensorError
        For scalars, and lengths that do not fit. UnsupportedFunctionError as for `einsum`.
    """
    return _of_two("matmul", matmul_labels, a, b)


def inner(a: Any, b: Any) -> Product:
    """Return how `numpy.inner` is computed.

    Raises
    ------
    InvalidTensorError
        If the last axes differ in length. UnsupportedFunctionError as for `einsum`.
    """
    return _of_two("inner", inner_labels, a, b)


def _of_two(name: str, labels_of: Any, a: Any, b: Any) -> Product:
    pair = [x if isinstance(x, Stored) else operand(x) for x in (a, b)]
    *labels, out = labels_of(*(x.shape for x in pair))
    return _product(f"np.{name}", pair, labels, out)


def _product(name: str, operands: list[Any], labels: list[Labels], out: Labels) -> Product:
    """Return how a product is computed, whose axes have labels."""
    tensors, labels = _once(operands, labels)
    number = max(
        (k for k, x in enumerate(tensors) if isinstance(x, Stored)),
        key=lambda k: nbytes_of(tensors[k]),
    )
    folded, of = tensors[number], labels[number]
    # What is large is not read.
    others = [_in_memory(x) for x in (*tensors[:number], *tensors[number + 1 :])]
    labels_of_others = [*labels[:number], *labels[number + 1 :]]
    every = {*of}.union(*labels_of_others)
    dtype = dtype_of_product(folded.dtype, *(x.dtype for x in others))
    sparse = [_is_sparse(x) for x in (folded, *others)]
    is_sparse = all(sparse) or (any(sparse) and len(out) == len(every))
    ndim = len(of)
    if any(isinstance(x, Stored) for x in others):
        _check_pair(name, tensors, labels, out)
        numbers, known = _numbers(of, labels_of_others)
        fold: Any = StoredContraction(
            folded.shape, dtype, others[0], numbers[0], is_sparse, folded.block
        )
        found = [known[k] for k in free(numbers[0], ndim)]
        order = tuple(found.index(label) for label in out)
    else:
        others = [cast(x, dtype) for x in others]
        others, labels_of_others = _without_own_sums(others, labels_of_others, {*of, *out})
        numbers, known = _numbers(of, labels_of_others)
        axes = tuple(known.index(label) for label in out)
        factors = tuple(zip(map(_indexable, others), numbers, strict=True))
        if is_sparse or any(isinstance(x, Elements) for x in others):
            fold = SparseContraction(folded.shape, dtype, factors, axes, is_sparse)
        else:
            fold = Contraction(folded.shape, dtype, factors, axes)
        order = tuple(range(len(out)))
    check_shape(fold.answer_shape)
    return Product(number, folded, fold, order)


def _once(operands: list[Any], labels: list[Labels]) -> tuple[list[Any], list[Labels]]:
    """Return operands of which each has a label once, without axes of length 1 whose label is longer elsewhere."""
    tensors: list[Any] = []
    names: list[Labels] = []
    for x, of in zip(operands, labels, strict=True):
        if isinstance(x, Stored):
            x, of = _diagonal(x, of)
        else:
            (x,), (of,) = diagonals([x], [of])
        tensors.append(x)
        names.append(of)
    alike = [
        np.broadcast_to(np.zeros((), np.int8), x.shape) if isinstance(x, Stored) else x
        for x in tensors
    ]
    found, names_left, _ = same_lengths(alike, names)
    for k, x in enumerate(tensors):
        if isinstance(x, Stored):
            key = (slice(None) if label in names_left[k] else 0 for label in names[k])
            found[k] = x.part((*key, ...))  # type: ignore[call-overload]
    return found, names_left


def _diagonal(stored: Stored, of: Labels) -> tuple[Stored, Labels]:
    """Return what of a stored tensor lies on the diagonal of axes of one label, and the labels that are left."""
    twice = [label for label in dict.fromkeys(of) if of.count(label) > 1]
    if not twice:
        return stored, of
    key: list[Any] = [slice(None)] * len(of)
    places = [k for k, label in enumerate(of) if label in twice]
    for k in places:
        length, first = stored.shape[k], stored.shape[of.index(of[k])]
        if length != first:
            raise InvalidOptionError(
                f"einsum: {of[k]!r} stands for axes of lengths {first} and {length} of one operand; a diagonal needs "
                "equal ones"
            )
        key[k] = np.arange(length).reshape(-1, *(1,) * (len(twice) - 1 - twice.index(of[k])))
    rest = [label for label in of if label not in twice]
    # NumPy's place for index arrays: where they are if they are together, else in front.
    together = places == list(range(places[0], places[-1] + 1))
    rest[places[0] * together : places[0] * together] = twice
    return stored.part(tuple(key)), rest


def _in_memory(x: Any) -> Any:
    """Return an operand in memory, a stored one only if it is small."""
    if not isinstance(x, Stored) or not is_small(x):
        return x
    found = x.read()
    return found if isinstance(found, Elements) else np.asarray(found)


def _indexable(x: Any) -> Any:
    """Return an operand that a fold can cut."""
    if isinstance(x, Elements) and not isinstance(x, SparseTensor):
        return SparseTensor._trusted(x.coords, x.values, x.shape)
    return x


def _is_sparse(x: Any) -> bool:
    return x.is_sparse if isinstance(x, Stored) else isinstance(x, Elements)


def _check_pair(name: str, tensors: list[Any], labels: list[Labels], out: Labels) -> None:
    """Raise UnsupportedFunctionError unless all that two tensors share is summed, and nothing else is."""
    shared = {*labels[0]}.intersection(*labels[1:])
    if len(tensors) != 2 or {*labels[0]} ^ {*labels[-1]} != {*out} or not shared.isdisjoint(out):
        large = [x for x in tensors if isinstance(x, Stored) and not is_small(x)]
        texts = ", ".join(f"{x.meta.spec.id!r} of shape {x.shape}" for x in large)
        raise UnsupportedFunctionError(
            f"{name} of several large stored tensors ({texts}) is there for two of them only, if all labels that both "
            "have are summed and no others; read all but one of them: ref[...]"
        )


def _without_own_sums(
    operands: list[Any], labels: list[Labels], wanted: set[Label]
) -> tuple[list[Any], list[Labels]]:
    """Return operands in memory that have no labels but those wanted: the others are summed among them at once."""
    while True:
        own = next((label for of in labels for label in of if label not in wanted), None)
        if own is None:
            return operands, labels
        some = [k for k, of in enumerate(labels) if own in of]
        rest = [k for k in range(len(labels)) if k not in some]
        needed = wanted.union(*(labels[k] for k in rest))
        out = [
            label
            for label in dict.fromkeys(label for k in some for label in labels[k])
            if label in needed
        ]
        found = contracted([operands[k] for k in some], [labels[k] for k in some], out)
        operands = [*(operands[k] for k in rest), found]
        labels = [*(labels[k] for k in rest), out]


def _numbers(of: Labels, labels: list[Labels]) -> tuple[list[tuple[int, ...]], Labels]:
    """Return a number for each axis of the operands beside the one that is folded, and the labels by their numbers."""
    known = list(dict.fromkeys([*of, *(label for some in labels for label in some)]))
    return [tuple(known.index(label) for label in some) for some in labels], known
