"""einsum: sums of products by the labels of axes, of any number of tensors, two at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.ops.elements import Elements, canonical
from tensorlake_spark.ops.numpy_arguments import dtype_of_product
from tensorlake_spark.ops.products.contraction import (
    Label,
    Operand,
    cast,
    dense_of,
    elements_of,
    multiply,
    operand,
    same_lengths,
    transposed,
)
from tensorlake_spark.ops.products.numpy_products import scalar_of

Array = np.ndarray[Any, Any]

_ROOMY = 4  # a product on the way with so many cells for each element stays sparse
_LONGEST = 1000  # to weigh one order against another, an axis is not longer


def einsum(*operands: Any, optimize: Any = True) -> Any:
    """Return a sum of products by Einstein's convention.

    Parameters
    ----------
    *operands
        ``subscripts, x, y, ...`` or ``x, labels, y, labels, ..., [labels of the result]``, as in NumPy: letters, an
        ellipsis, a label twice for a diagonal, ``->`` and the labels of the result. Sparse tensors and arrays.
    optimize
        How `numpy.einsum_path` chooses the order of the products.

    Returns
    -------
    Elements, ndarray or scalar
        Sparse if all operands are, or if nothing is summed; dense otherwise. A product on the way to it stays sparse
        where its elements would be few.

    Raises
    ------
    InvalidOptionError
        A ValueError, as NumPy's: for subscripts that make no sense, or do not fit the operands.
    InvalidTensorError
        A ValueError: for axes of one label that differ in length, and results of 2**63 elements or more.

    Examples
    --------
    >>> x = elements_of(np.array([[0, 2], [3, 0]]))
    >>> einsum("ij,jk->ik", x, x).values.tolist(), einsum("ij,j", x, [1, 1]).tolist(), einsum("ii", x)
    ([6, 6], [2, 3], np.int64(0))
    """
    texts, given = arguments(operands)
    tensors = [operand(x) for x in given]
    labels, out = parse(texts, [x.ndim for x in tensors])
    return scalar_of(contracted(tensors, labels, out, optimize))


def contracted(
    operands: Sequence[Operand],
    labels: Sequence[Sequence[Label]],
    out: Sequence[Label],
    optimize: Any = True,
) -> Operand:
    """Return the sum of products of tensors whose axes have labels; one without axes is not a scalar here.

    Parameters
    ----------
    operands : sequence of Elements or ndarray
        The operands, one at least.
    labels : sequence of sequences of labels
        For each operand a label for each axis.
    out : sequence of labels
        Those of the result, each of them of an operand, none twice.
    optimize
        As for `einsum`.

    Raises
    ------
    InvalidOptionError
        If the axes of a diagonal differ in length. InvalidTensorError if those of other labels do.

    Examples
    --------
    >>> contracted([np.ones((2, 3)), elements_of(np.eye(3))], ["ij", "jk"], "ik").shape
    (2, 3)
    """
    tensors, labels, long = same_lengths(*diagonals(operands, labels))
    dtype = dtype_of_product(*(x.dtype for x in tensors))
    is_sparse = all(isinstance(x, Elements) for x in tensors)
    tensors = [cast(x, dtype) for x in tensors]
    for pair in _order(tensors, labels, out, long, optimize):
        some = [(tensors.pop(k), labels.pop(k)) for k in sorted(pair, reverse=True)][::-1]
        wanted = {*out}.union(*labels)
        found, of = some[0]
        if len(some) > 1:
            found, of = _pair(some[0], some[1], wanted, out if not labels else None)
        tensors.append(found)
        labels.append(of)
    result = _summed(tensors[0], labels[0], out)
    # Whether a product on the way was sparse is no matter of the result.
    if isinstance(result, Elements) and len(out) < len(long) and not is_sparse:
        result = dense_of(result)
    return result


def arguments(operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """Return subscripts as text, and the operands as they are given.

    Raises
    ------
    InvalidOptionError
        If there is none, or labels are no numbers of subscripts.

    Examples
    --------
    >>> arguments(([[1, 2]], [0, 1], [1]))
    ('AB->B', [[[1, 2]]])
    """
    if not operands:
        raise InvalidOptionError("einsum of nothing: it takes subscripts and an operand at least")
    if isinstance(operands[0], str):
        return operands[0], [*operands[1:]]
    pairs, rest = list(zip(operands[::2], operands[1::2])), operands[len(operands) // 2 * 2 :]
    texts = ",".join(_letters(of) for _, of in pairs)
    if rest:
        texts += "->" + _letters(rest[0])
    return texts, [x for x, _ in pairs]


def _letters(labels: Sequence[Any]) -> str:
    """Return numbers of labels as letters, as NumPy has them: capitals first."""
    known = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    try:
        return "".join("..." if label is Ellipsis else known[label] for label in labels)
    except (TypeError, IndexError):
        raise InvalidOptionError(
            f"labels {labels!r} of einsum; they are integers from 0 to 51, and Ellipsis"
        ) from None


def parse(text: str, ranks: Sequence[int]) -> tuple[list[list[Label]], list[Label]]:
    """Return the labels of every operand's axes, and those of the result; axes of an ellipsis have numbers.

    Parameters
    ----------
    text : str
        Subscripts.
    ranks : sequence of int
        Of the operands.

    Raises
    ------
    InvalidOptionError
        A ValueError, which names what is wrong.

    Examples
    --------
    >>> parse("...ij,jk", [3, 2])
    ([[-1, 'i', 'j'], ['j', 'k']], [-1, 'i', 'k'])
    """
    plain = text.replace(" ", "")
    left, arrow, right = plain.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise InvalidOptionError(
            f"einsum {text!r} names {len(terms)} operands, there are {len(ranks)}"
        )
    labels = [_term(term, rank, text) for term, rank in zip(terms, ranks, strict=True)]
    rest = max((sum(isinstance(n, int) for n in of) for of in labels), default=0)
    named = [n for of in labels for n in of if isinstance(n, str)]
    if arrow:
        dots = right.count("...")
        out = _term(right, len(right) - 3 * dots + rest * dots, text)
    else:
        out = [*range(-rest, 0), *sorted(n for n in {*named} if named.count(n) == 1)]
    for label in out:
        if isinstance(label, str) and label not in named:
            raise InvalidOptionError(f"einsum {text!r}: {label!r} of the result is in no operand")
        if out.count(label) > 1:
            raise InvalidOptionError(f"einsum {text!r}: the result has {label!r} twice")
    if {n for of in labels for n in of if isinstance(n, int)} - {*out}:
        raise InvalidOptionError(f"einsum {text!r}: the result has no '...', and the operands do")
    return labels, out


def _term(term: str, rank: int, text: str) -> list[Label]:
    """Return the labels of one operand."""
    head, dots, tail = term.partition("...")
    for letter in head + tail:
        if not (letter.isascii() and letter.isalpha()):
            raise InvalidOptionError(
                f"einsum {text!r}: {letter!r} is not a subscript; they are letters, '...', ',' and '->'"
            )
    rest = rank - len(head) - len(tail)
    if rest < 0 or (rest and not dots):
        raise InvalidOptionError(
            f"einsum {text!r}: {term!r} has {len(head) + len(tail)} subscripts for {rank} axes"
        )
    return [*head, *range(-rest, 0), *tail]


def diagonals(
    tensors: Sequence[Operand], labels: Sequence[Sequence[Label]]
) -> tuple[list[Operand], list[list[Label]]]:
    """Return operands of which each has a label once: those of an axis that repeats one are on a diagonal.

    Raises
    ------
    InvalidOptionError
        If axes of a diagonal differ in length.

    Examples
    --------
    >>> diagonals([np.array([[1, 2], [3, 4]])], ["ii"])
    ([array([1, 4])], [['i']])
    """
    found, names = [], []
    for x, of in zip(tensors, labels, strict=True):
        once = list(dict.fromkeys(of))
        found.append(x if len(once) == len(of) else _diagonal(x, of, once))
        names.append(once)
    return found, names


def _diagonal(x: Operand, of: Sequence[Label], once: Sequence[Label]) -> Operand:
    axes = [of.index(label) for label in once]
    for k, label in enumerate(of):
        if x.shape[k] != x.shape[of.index(label)]:
            raise InvalidOptionError(
                f"einsum: {label!r} stands for axes of lengths {x.shape[of.index(label)]} and {x.shape[k]} "
                "of one operand; a diagonal needs equal ones"
            )
    if not isinstance(x, Elements):
        return np.asarray(np.einsum(x, _numbers(of), _numbers(once, of)))
    kept = np.ones(x.nnz, bool)
    for k, label in enumerate(of):
        kept &= x.coords[k] == x.coords[of.index(label)]
    # The first axis of a label decides the order of its elements.
    return canonical(x.coords[axes][:, kept], x.values[kept], tuple(x.shape[k] for k in axes))


def _numbers(labels: Sequence[Label], among: Sequence[Label] | None = None) -> list[int]:
    """Return a number for each label, that of its first place."""
    known = list(among or labels)
    return [known.index(label) for label in labels]


def _order(
    tensors: Sequence[Operand],
    labels: Sequence[Sequence[Label]],
    out: Sequence[Label],
    long: dict[Label, int],
    optimize: Any,
) -> list[tuple[int, ...]]:
    """Return which operands are multiplied, step by step; each step puts its result at the end."""
    if len(tensors) < 3:
        return [tuple(range(len(tensors)))]
    known = list(long)
    arguments: list[Any] = []
    for of in labels:
        lengths = [min(long[label], _LONGEST) for label in of]
        arguments += [np.broadcast_to(np.int8(0), lengths), [known.index(label) for label in of]]
    path, _ = np.einsum_path(
        *arguments, [known.index(n) for n in out], optimize=optimize or "greedy"
    )
    steps: list[tuple[int, ...]] = []
    for step in path[1:]:
        count = len(tensors) - sum(len(s) - 1 for s in steps)
        steps.append(step[:2])
        # More than two at once: the others join one by one, as the last of what is left.
        for _ in step[2:]:
            count -= 1
            steps.append((count - 2, count - 1))
    return steps


def _pair(
    first: tuple[Operand, Sequence[Label]],
    second: tuple[Operand, Sequence[Label]],
    wanted: set[Label],
    last: Sequence[Label] | None,
) -> tuple[Operand, list[Label]]:
    """Return the product of two operands, and its labels: those that are wanted further on."""
    (a, of_a), (b, of_b) = (
        _alone(*some, {*other[1]} | wanted) for some, other in ((first, second), (second, first))
    )
    out = (
        list(last)
        if last is not None
        else [n for n in dict.fromkeys((*of_a, *of_b)) if n in wanted]
    )
    if not isinstance(a, Elements) and not isinstance(b, Elements):
        known = list(dict.fromkeys((*of_a, *of_b)))
        numbers = ([known.index(n) for n in of] for of in (of_a, of_b, out))
        left, right, result = numbers
        return np.asarray(np.einsum(a, left, b, right, result)), out
    if last is None and _is_wide(a, of_a, b, of_b, out):
        a, b = elements_of(a), elements_of(b)
    return multiply(a, of_a, b, of_b, out), out


def _is_wide(
    a: Operand, of_a: Sequence[Label], b: Operand, of_b: Sequence[Label], out: Sequence[Label]
) -> bool:
    """Return whether a product of a sparse and a dense operand has far more cells than elements."""
    if not isinstance(a, Elements):
        a, of_a, b, of_b = b, of_b, a, of_a
    if not isinstance(a, Elements) or isinstance(b, Elements):
        return False
    long = dict(zip((*of_a, *of_b), (*a.shape, *b.shape), strict=True))
    most = a.nnz * math.prod(long[label] for label in of_b if label not in of_a)
    return bool(math.prod(long[label] for label in out) > _ROOMY * most)


def _alone(x: Operand, of: Sequence[Label], wanted: set[Label]) -> tuple[Operand, Sequence[Label]]:
    """Return an operand summed over the axes whose label nobody else wants."""
    kept = [label for label in of if label in wanted]
    return (x, of) if len(kept) == len(of) else (_summed(x, of, kept), kept)


def _summed(x: Operand, of: Sequence[Label], out: Sequence[Label]) -> Operand:
    """Return an operand with the axes of some labels, in their order, summed over the others, in its dtype."""
    if not isinstance(x, Elements):
        return np.asarray(np.einsum(x, _numbers(of), _numbers(out, of)))
    axes = [of.index(label) for label in out]
    if len(axes) == x.ndim:
        found = transposed(x, axes)
        return found if found.values.all() else canonical(found.coords, found.values, found.shape)
    return canonical(x.coords[axes], x.values, tuple(x.shape[axis] for axis in axes), "sum")


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {np.einsum: einsum}
"""What computes NumPy's functions."""
