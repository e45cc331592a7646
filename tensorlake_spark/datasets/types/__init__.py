"""What a column of a dataset may hold, and how it is written in Arrow.

Begin with `base`, then `schema`.
May import ``layouts``, ``rows``, ``tensor`` and ``errors``.

`scalars`, `texts`, `class_label`; `tensors` (`tensor_struct` writes them), `annotations`; ``media``; `nested`, `plain`.
`guessing` finds a type for values, and `link_url` says what may be stored as a link.
"""

from tensorlake_spark.datasets.types.annotations import BoundingBox, Keypoints, Polygon
from tensorlake_spark.datasets.types.base import Tiled, Type, as_type
from tensorlake_spark.datasets.types.class_label import ClassLabel
from tensorlake_spark.datasets.types.media.images import Image
from tensorlake_spark.datasets.types.media.masks import BinaryMask, SegmentMask
from tensorlake_spark.datasets.types.media.medical import Dicom
from tensorlake_spark.datasets.types.media.recordings import Audio, Sound, Video
from tensorlake_spark.datasets.types.nested import Link, Reference, Sequence
from tensorlake_spark.datasets.types.plain import Plain
from tensorlake_spark.datasets.types.scalars import Scalar
from tensorlake_spark.datasets.types.schema import SampleSchema
from tensorlake_spark.datasets.types.tensors import Embedding, PointCloud, Tensor
from tensorlake_spark.datasets.types.texts import Json, Text

__all__ = [
    "Audio",
    "BinaryMask",
    "BoundingBox",
    "ClassLabel",
    "Dicom",
    "Embedding",
    "Image",
    "Json",
    "Keypoints",
    "Link",
    "Plain",
    "PointCloud",
    "Polygon",
    "Reference",
    "SampleSchema",
    "Scalar",
    "SegmentMask",
    "Sequence",
    "Sound",
    "Tensor",
    "Text",
    "Tiled",
    "Type",
    "Video",
    "as_type",
]
