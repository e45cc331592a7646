"""Samples in the files of others, with a schema, a piece at a time.

Begin with `source_kinds`: ``source_of(path)``.
May import ``datasets.types``, ``delta.store`` and ``errors``.

`sample_source` is what all kinds keep, `folder` where the files lie. Kinds: `image_folder`, `annotated` (COCO and
YOLO), `tar_shards` (WebDataset), `tables` (URLs, Hugging Face), `mnist` and `cifar`. They share `image_bytes`,
`array_bytes`, `column_names` and `tar_members`. Nothing is unpickled, and nothing is unpacked to a disk.
"""
