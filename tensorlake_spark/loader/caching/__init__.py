"""Byte ranges of remote files, kept on a local disk. Begin with `range_cache`.

`cache_option` reads what a user gives. May import ``rows.checksum`` and ``errors``.
"""
