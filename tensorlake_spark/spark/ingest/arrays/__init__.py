"""Arrays of files (images, NumPy, Zarr, HDF5, TIFF) to slabs or whole tensors.

Begin with `array_job`.
May import the modules of ``spark.ingest``, nothing of ``records``.

`array_discovery` looks at files on executors, `array_files` and `zarr_store` open them, `external_links` refuses what
leads out of them; `array_plan` says what would be written, `tiling` cuts it, `array_slabs` reads it, `array_sample`
says how full it is.
"""
