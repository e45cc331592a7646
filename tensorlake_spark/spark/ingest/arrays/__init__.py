"""Arrays of files (images, NumPy, Zarr, HDF5, TIFF) to slabs or whole tensors. Begin with `array_job`.

`array_files` opens them, `array_discovery` looks at them on executors, `tiling` cuts the work. May import
the modules of ``spark.ingest``, nothing of ``records``.
"""
