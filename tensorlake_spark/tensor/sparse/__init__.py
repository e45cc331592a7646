"""`SparseTensor`, an array of which only some elements are stored.

Begin with `array`.
May import ``spec``, ``ops`` and ``indexing``.

`operator_methods` has operators and NumPy's ufuncs; `shape_methods`, `reduction_methods` and `product_methods` are its
other methods. `array_functions` is the protocol of NumPy's functions, `array_namespace` that of the array API;
`interchange` has what comes from other packages and goes to them. `builder` is a tensor that may change, by
`builder_view`, `assigned` and `element_buffer`.
"""

from tensorlake_spark.tensor.sparse.array import SparseTensor, array_of, sparse_of
from tensorlake_spark.tensor.sparse.builder import SparseBuilder
from tensorlake_spark.tensor.sparse.interchange import array_of_torch, check_unmasked, is_torch

__all__ = [
    "SparseBuilder",
    "SparseTensor",
    "array_of",
    "array_of_torch",
    "check_unmasked",
    "is_torch",
    "sparse_of",
]
