"""Where the bytes are: rows <-> files of a Delta table. The only room that imports deltalake.

``store`` where files lie; ``log`` the versions of a table; ``files`` Parquet. Each may import those before it, and
``rows``, ``tensor`` and ``indexing``. Begin with `log.snapshot`.
"""
