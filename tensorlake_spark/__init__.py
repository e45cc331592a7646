"""Tensors in Delta Lake, read by slices.

``open`` a lake, ``write`` an array, index the `TensorRef` like NumPy. Spark's side is
`tensorlake_spark.spark`; importing this package does not import pyspark.
"""

from tensorlake_spark.delta.compact import OptimizeReport
from tensorlake_spark.errors import (
    ConcurrentWriteError,
    CorruptDataError,
    FormatError,
    InvalidKeyError,
    InvalidOptionError,
    InvalidSliceError,
    InvalidTensorError,
    MissingDataError,
    MissingDependencyError,
    StorageError,
    TableNotFoundError,
    TensorExistsError,
    TensorLakeError,
    TensorNotFoundError,
    UnknownLabelError,
    UnsupportedDtypeError,
    UnsupportedFeatureError,
)
from tensorlake_spark.lake import TensorLake, open  # noqa: A004
from tensorlake_spark.ref import TensorRef
from tensorlake_spark.sizes import estimate
from tensorlake_spark.sparse import SparseTensor
from tensorlake_spark.spec import TensorSpec

__version__ = "0.1.0"

__all__ = [
    "ConcurrentWriteError",
    "CorruptDataError",
    "FormatError",
    "InvalidKeyError",
    "InvalidOptionError",
    "InvalidSliceError",
    "InvalidTensorError",
    "MissingDataError",
    "MissingDependencyError",
    "OptimizeReport",
    "SparseTensor",
    "StorageError",
    "TableNotFoundError",
    "TensorExistsError",
    "TensorLake",
    "TensorLakeError",
    "TensorNotFoundError",
    "TensorRef",
    "TensorSpec",
    "UnknownLabelError",
    "UnsupportedDtypeError",
    "UnsupportedFeatureError",
    "estimate",
    "open",
]
