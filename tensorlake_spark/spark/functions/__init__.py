"""Plain Delta tables of tensors in Spark.

Begin with `sql_registration`, which makes the functions known to SQL.
May import ``spark.frames``, ``spark.source`` and ``spark.cluster``.

Of rows: `row_functions`, `slice_predicate`, `decoding`, `encoding`, `read_tensor`, `collect_tensor`. Of tensors:
`tensor_functions`, `udfs`, `arithmetic` on `tensor_stacks`, `aggregates`. Those of images are in ``spark.frames``.
"""

from typing import TYPE_CHECKING

from tensorlake_spark import moved
from tensorlake_spark.spark.frames.image_functions import image_decode, image_resize
from tensorlake_spark.spark.functions.aggregates import (
    tensor_mean_agg,
    tensor_stack,
    tensor_sum_agg,
)
from tensorlake_spark.spark.functions.collect_tensor import collect_tensor
from tensorlake_spark.spark.functions.encoding import metadata_rows, tensor_encode
from tensorlake_spark.spark.functions.read_tensor import read_tensor
from tensorlake_spark.spark.functions.row_functions import slice_filter, tensor_block, tensor_decode
from tensorlake_spark.spark.functions.sql_registration import register
from tensorlake_spark.spark.functions.tensor_functions import (
    tensor_add,
    tensor_argmax,
    tensor_cast,
    tensor_cosine,
    tensor_distance,
    tensor_div,
    tensor_dot,
    tensor_dtype,
    tensor_from_array,
    tensor_get,
    tensor_matmul,
    tensor_max,
    tensor_mean,
    tensor_min,
    tensor_mul,
    tensor_norm,
    tensor_reshape,
    tensor_shape,
    tensor_slice,
    tensor_sub,
    tensor_sum,
    tensor_to_array,
)

__all__ = [
    "collect_tensor",
    "image_decode",
    "image_resize",
    "metadata_rows",
    "read_tensor",
    "register",
    "slice_filter",
    "tensor_add",
    "tensor_argmax",
    "tensor_block",
    "tensor_cast",
    "tensor_cosine",
    "tensor_decode",
    "tensor_distance",
    "tensor_div",
    "tensor_dot",
    "tensor_dtype",
    "tensor_encode",
    "tensor_from_array",
    "tensor_get",
    "tensor_matmul",
    "tensor_max",
    "tensor_mean",
    "tensor_mean_agg",
    "tensor_min",
    "tensor_mul",
    "tensor_norm",
    "tensor_reshape",
    "tensor_shape",
    "tensor_slice",
    "tensor_stack",
    "tensor_sub",
    "tensor_sum",
    "tensor_sum_agg",
    "tensor_to_array",
]

if not TYPE_CHECKING:  # for mypy no name is there but those of the folder
    __getattr__ = moved.names_of(__name__)
