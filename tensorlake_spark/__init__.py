"""Tensors in Delta Lake, read by slices.

Begin with ``open``: it gives a lake. ``write`` an array there, and index the `TensorRef` like NumPy. Spark's side is
`tensorlake_spark.spark`, found as ``spark`` here; importing this package does not import pyspark.

The rooms, each importing only those below it: ``jobs``; ``spark``; ``lake``; ``audit`` and ``upkeep``; ``writing``;
``reading``; ``layouts`` and ``delta``; ``rows``; ``tensor``; ``indexing``. All may import ``errors``, ``progress``,
``threads`` and ``moved`` (old import paths). ``__main__`` is the command line. docs/architecture.md has a picture.
"""

import importlib
from types import ModuleType

from tensorlake_spark import moved
from tensorlake_spark.audit.check import CheckReport, Finding
from tensorlake_spark.audit.receipt import PurgedFile, PurgeReceipt, WrittenFile, verify_receipt
from tensorlake_spark.delta.files.compaction import OptimizeReport
from tensorlake_spark.errors import (
    ConcurrentWriteError,
    CorruptDataError,
    FormatError,
    InvalidKeyError,
    InvalidKeyTypeError,
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
from tensorlake_spark.indexing import ReadPlan
from tensorlake_spark.lake import TensorLake, open  # noqa: A004
from tensorlake_spark.lake.ref import TensorRef
from tensorlake_spark.tensor.sparse import SparseTensor
from tensorlake_spark.tensor.spec import TensorSpec
from tensorlake_spark.writing.estimate import estimate

__version__ = "0.1.0"

__all__ = [
    "CheckReport",
    "ConcurrentWriteError",
    "CorruptDataError",
    "Finding",
    "FormatError",
    "InvalidKeyError",
    "InvalidKeyTypeError",
    "InvalidOptionError",
    "InvalidSliceError",
    "InvalidTensorError",
    "MissingDataError",
    "MissingDependencyError",
    "OptimizeReport",
    "PurgeReceipt",
    "PurgedFile",
    "ReadPlan",
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
    "WrittenFile",
    "estimate",
    "open",
    "verify_receipt",
]


moved.install()


def __getattr__(name: str) -> ModuleType:
    # Late: "spark" is of no use without pyspark, and a module that moved warns.
    if name == "spark" or name in moved.MODULES:
        return importlib.import_module(f"tensorlake_spark.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), "spark"})
