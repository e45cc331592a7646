"""Labels of the axes of two operands, by which a product of NumPy is a sum over one label."""

from __future__ import annotations

from tensorlake_spark.errors import InvalidTensorError
from tensorlake_spark.ops.broadcasting import Shape
from tensorlake_spark.ops.products.contraction import Label

Labels = list[Label]


def matmul_labels(a: Shape, b: Shape) -> tuple[Labels, Labels, Labels]:
    """Return the labels of both operands of a matrix product, and those of the result.

    Parameters
    ----------
    a, b : tuple of int
        Shapes of the operands.

    Raises
    ------
    InvalidTensorError
        A ValueError, as NumPy's: for scalars, and lengths that do not fit.

    Examples
    --------
    >>> matmul_labels((9, 2, 3), (3, 4))
    ([0, 'row', 'sum'], ['sum', 'col'], [0, 'row', 'col'])
    """
    if not a or not b:
        raise InvalidTensorError(
            f"matmul of shapes {a} and {b}: an operand has no axes; use * for a scalar"
        )
    check_summed("matmul", a, -1, b, max(0, len(b) - 2))
    stack = max(len(a), len(b), 2) - 2
    of_a: Labels = [*range(stack - (len(a) - 2), stack), "row", "sum"] if len(a) > 1 else ["sum"]
    of_b: Labels = [*range(stack - (len(b) - 2), stack), "sum", "col"] if len(b) > 1 else ["sum"]
    return of_a, of_b, [*range(stack), *(n for n in ("row", "col") if n in of_a or n in of_b)]


def inner_labels(a: Shape, b: Shape) -> tuple[Labels, Labels, Labels]:
    """Return the labels of both operands of an inner product, and those of the result; of a scalar there are none.

    Raises
    ------
    InvalidTensorError
        A ValueError, as NumPy's, if the last axes differ in length.

    Examples
    --------
    >>> inner_labels((2, 3), (3,))
    ([0, 'sum'], ['sum'], [0])
    """
    of_a, of_b = [*range(len(a))], [*range(len(a), len(a) + len(b))]
    if not a or not b:
        return of_a, of_b, [*of_a, *of_b]
    check_summed("inner", a, -1, b, -1)
    return [*of_a[:-1], "sum"], [*of_b[:-1], "sum"], [*of_a[:-1], *of_b[:-1]]


def check_summed(name: str, a: Shape, of_a: int, b: Shape, of_b: int) -> None:
    """Raise InvalidTensorError unless an axis of each shape has one length.

    Examples
    --------
    >>> check_summed("dot", (2, 3), -1, (3,), 0)
    """
    if a[of_a] != b[of_b]:
        raise InvalidTensorError(
            f"{name} of shapes {a} and {b}: axis {of_a % len(a)} of the first has length "
            f"{a[of_a]}, axis {of_b % len(b)} of the second {b[of_b]}; they must be equal"
        )
