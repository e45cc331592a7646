"""Products of sparse tensors as methods."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from tensorlake_spark.ops.elements import Elements
from tensorlake_spark.ops.products import contraction, tensor_products


class ProductMethods(Elements):
    """Products with tensors, matrices and vectors, dense ones too."""

    __slots__ = ()

    def __matmul__(self: Any, other: Any) -> Any:
        return np.matmul(self, other)

    def __rmatmul__(self: Any, other: Any) -> Any:
        return np.matmul(other, self)

    def dot(self: Any, other: Any) -> Any:
        """Return ``np.dot(self, other)``: the last axis with the last but one of the other, or its only one.

        Examples
        --------
        >>> import numpy as np, tensorlake_spark as tl
        >>> tl.SparseTensor([[0, 1], [1, 0]], [2, 3], (2, 2)).dot(np.array([1, 10])).tolist()
        [20, 3]
        """
        return np.dot(self, other)

    def tensordot(self: Any, other: Any, axes: Any = 2) -> Any:
        """Return ``np.tensordot(self, other, axes)``: the sum of products over pairs of axes.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [2, 3], (2, 2))
        >>> x.tensordot(x, 2)
        np.int64(13)
        """
        return np.tensordot(self, other, axes)

    def ttv(self, vectors: Any, axis: int | Sequence[int] | None = None) -> Any:
        """Return the tensor times vectors: each axis of `axis` is summed with the weights of its vector.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> tl.SparseTensor([[0, 1], [1, 0]], [2, 3], (2, 2)).ttv([1, 10], axis=1).tolist()
        [20, 3]
        """
        return self._wrapped(tensor_products.ttv(self, vectors, axis))

    def ttm(
        self, matrices: Any, axis: int | Sequence[int] | None = None, transpose: bool = False
    ) -> Any:
        """Return the tensor times matrices of shape (m, length of their axis), with `transpose` the other way round.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> tl.SparseTensor([[0, 1], [1, 0]], [2, 3], (2, 2)).ttm([[1, 10]], axis=1).tolist()
        [[20], [3]]
        """
        return self._wrapped(tensor_products.ttm(self, matrices, axis, transpose))

    def mttkrp(self, factors: Sequence[Any], mode: int) -> Any:
        """Return the unfolding of `mode` times the Khatri-Rao product of the other factors, (length, rank) each.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> x = tl.SparseTensor([[0, 1], [1, 0]], [2, 3], (2, 2))
        >>> x.mttkrp([None, [[1, 5], [10, 50]]], 0).tolist()
        [[20, 100], [3, 15]]
        """
        return tensor_products.mttkrp(self, factors, mode)

    def to_csr(self, rows: int | Iterable[int] = 0) -> Any:
        """Return a read-only ``scipy.sparse.csr_array`` with the axes `rows` as rows; it is kept on the tensor.

        Examples
        --------
        >>> import tensorlake_spark as tl
        >>> tl.SparseTensor([[1], [0], [2]], [7], (2, 2, 3)).to_csr(rows=(0, 1)).shape
        (4, 3)
        """
        return contraction.to_csr(self, rows)
