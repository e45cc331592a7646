"""`SparseTensor`, an array of which only some elements are stored. Begin with `array`.

`array_functions` is NumPy's protocol; `product_methods` has the products; `interchange` has what comes from other packages and goes to them. May import ``spec``, ``ops`` and ``indexing``.
"""

from tensorlake_spark.tensor.sparse.array import SparseTensor, array_of, sparse_of
from tensorlake_spark.tensor.sparse.interchange import array_of_torch, is_torch

__all__ = ["SparseTensor", "array_of", "array_of_torch", "is_torch", "sparse_of"]
