"""The door from Python: a lake, and the tensors in it.

Begin with `lake`, then `ref`.
May import ``columns`` and what lies below it.

`TensorLake` is a `table` (which version is meant) with `versions` (history, tags, restore) and `upkeep` (optimise,
vacuum, check, purge); `ref` is one tensor. `changes` is what a lake and a `transaction` offer alike: write, convert,
delete; `tensor_extensions` opens a loader.
"""

from tensorlake_spark.lake.lake import TensorLake, open  # noqa: A004
from tensorlake_spark.lake.ref import TensorRef

__all__ = ["TensorLake", "TensorRef", "open"]
