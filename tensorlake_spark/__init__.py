"""Tensors in Delta Lake, read by slices.

Begin with `open`: it returns a lake. Its method ``write`` stores an array and returns a `TensorRef`; index that like a
NumPy array. `tensorlake_spark.spark` is for Spark. Names are imported when they are first used, so this loads no NumPy.

The rooms are folders, each importing only those below it: ``jobs``; ``spark``; ``query``; ``loader``; ``datasets``;
``lake``; ``columns``; ``audit``, ``computing`` and ``upkeep``; ``writing``; ``reading``; ``layouts`` and ``delta``;
``rows``; ``tensor``; ``ops``; ``indexing``. All may import ``errors``, ``fork_gate``, ``html_table``,
``kernel_switch``, ``loop_compiler``, ``own_memory``, ``progress``, ``threads``, ``thread_shares`` and ``moved`` (old
import paths).
``__main__`` is the command line, ``environment`` prints versions for a bug report. docs/architecture.md has a picture.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from tensorlake_spark import moved
from tensorlake_spark.errors import (
    BuilderClosedError,
    ChangedLinkError,
    ConcurrentWriteError,
    CorruptDataError,
    DeniedStorageError,
    DenseResultError,
    ForbiddenLinkError,
    FormatError,
    InvalidKeyError,
    InvalidKeyTypeError,
    InvalidLinkError,
    InvalidOptionError,
    InvalidQueryError,
    InvalidSampleError,
    InvalidSampleTypeError,
    InvalidSliceError,
    InvalidTensorError,
    LoaderClosedError,
    LoaderWorkerError,
    MissingDataError,
    MissingDependencyError,
    MissingLinkError,
    NumberOverflowError,
    SampleNotFoundError,
    StorageError,
    TableNotFoundError,
    TensorExistsError,
    TensorLakeError,
    TensorNotFoundError,
    UnknownLabelError,
    UnsupportedDtypeError,
    UnsupportedFeatureError,
    UnsupportedFunctionError,
)

if TYPE_CHECKING:  # type checkers and editors read these; Python goes by `_HOMES`
    from tensorlake_spark.audit.check import CheckReport, Finding
    from tensorlake_spark.audit.digest import Digest, DigestNode
    from tensorlake_spark.audit.receipt import (
        PurgedFile,
        PurgeReceipt,
        WrittenFile,
        verify_receipt,
    )
    from tensorlake_spark.columns.feature_table import FeatureTable
    from tensorlake_spark.computing.tensor_view import TensorView
    from tensorlake_spark.datasets.column import Column
    from tensorlake_spark.datasets.dataset import Dataset, dataset
    from tensorlake_spark.datasets.links.link_rules import LinkRules
    from tensorlake_spark.delta.files.compacting.compaction import OptimizeReport
    from tensorlake_spark.environment import show_versions
    from tensorlake_spark.errors import AxisError
    from tensorlake_spark.indexing.read_plan import ReadPlan
    from tensorlake_spark.lake.lake import TensorLake, open  # noqa: A004
    from tensorlake_spark.lake.ref import TensorRef
    from tensorlake_spark.loader.zipped import zip  # noqa: A004
    from tensorlake_spark.query.engine.read_report import ReadReport
    from tensorlake_spark.query.query import query
    from tensorlake_spark.query.user_functions import register_function
    from tensorlake_spark.query.view import View
    from tensorlake_spark.tensor.sparse import SparseBuilder, SparseTensor
    from tensorlake_spark.tensor.spec import TensorSpec
    from tensorlake_spark.writing.estimate import estimate

__version__ = "0.2.0"

_HOMES = {
    "AxisError": "errors",
    "CheckReport": "audit.check",
    "Column": "datasets.column",
    "Dataset": "datasets.dataset",
    "Digest": "audit.digest",
    "DigestNode": "audit.digest",
    "FeatureTable": "columns.feature_table",
    "Finding": "audit.check",
    "LinkRules": "datasets.links.link_rules",
    "OptimizeReport": "delta.files.compacting.compaction",
    "PurgeReceipt": "audit.receipt",
    "PurgedFile": "audit.receipt",
    "ReadPlan": "indexing.read_plan",
    "ReadReport": "query.engine.read_report",
    "SparseBuilder": "tensor.sparse",
    "SparseTensor": "tensor.sparse",
    "TensorLake": "lake.lake",
    "TensorRef": "lake.ref",
    "TensorSpec": "tensor.spec",
    "TensorView": "computing.tensor_view",
    "View": "query.view",
    "WrittenFile": "audit.receipt",
    "dataset": "datasets.dataset",
    "estimate": "writing.estimate",
    "open": "lake.lake",
    "query": "query.query",
    "register_function": "query.user_functions",
    "show_versions": "environment",
    "verify_receipt": "audit.receipt",
    "zip": "loader.zipped",
}
"""Where a name that is imported late is from."""

_ROOMS = {"duckdb": "query.duckdb_functions", "types": "datasets.types"}
"""Rooms inside others that have a short name here."""

__all__ = [
    "AxisError",
    "BuilderClosedError",
    "ChangedLinkError",
    "CheckReport",
    "Column",
    "ConcurrentWriteError",
    "CorruptDataError",
    "Dataset",
    "DeniedStorageError",
    "DenseResultError",
    "Digest",
    "DigestNode",
    "FeatureTable",
    "Finding",
    "ForbiddenLinkError",
    "FormatError",
    "InvalidKeyError",
    "InvalidKeyTypeError",
    "InvalidLinkError",
    "InvalidOptionError",
    "InvalidQueryError",
    "InvalidSampleError",
    "InvalidSampleTypeError",
    "InvalidSliceError",
    "InvalidTensorError",
    "LinkRules",
    "LoaderClosedError",
    "LoaderWorkerError",
    "MissingDataError",
    "MissingDependencyError",
    "MissingLinkError",
    "NumberOverflowError",
    "OptimizeReport",
    "PurgeReceipt",
    "PurgedFile",
    "ReadPlan",
    "ReadReport",
    "SampleNotFoundError",
    "SparseBuilder",
    "SparseTensor",
    "StorageError",
    "TableNotFoundError",
    "TensorExistsError",
    "TensorLake",
    "TensorLakeError",
    "TensorNotFoundError",
    "TensorRef",
    "TensorSpec",
    "TensorView",
    "UnknownLabelError",
    "UnsupportedDtypeError",
    "UnsupportedFeatureError",
    "UnsupportedFunctionError",
    "View",
    "WrittenFile",
    "dataset",
    "estimate",
    "open",
    "query",
    "register_function",
    "show_versions",
    "verify_receipt",
    "zip",
]


moved.install()


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    if name in _ROOMS:
        return import_module(f"{__name__}.{_ROOMS[name]}")
    if not name.startswith("_") and find_spec(f"{__name__}.{name}"):  # a room, or one that moved
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_ROOMS, "spark"})
