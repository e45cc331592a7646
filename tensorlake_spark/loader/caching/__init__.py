"""Byte ranges of remote files, kept on a local disk.

Begin with `range_cache`.
May import ``byte_size``, ``rows.checksum`` and ``errors``.

`cache_folder` is what all processes share; `cache_option` reads what a user gives.
"""
