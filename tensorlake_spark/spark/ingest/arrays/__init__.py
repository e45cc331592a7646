"""Arrays of files (images, NumPy, Zarr, HDF5, TIFF) to slabs or whole tensors. Begin with `job`.

`array_files` opens them, `found_arrays` looks at them on executors, `pieces` and `tiling` cut the work. May import
the modules of ``spark.ingest``, nothing of ``records``.
"""
