"""Where the bytes are: rows <-> files of a Delta table. The only room that imports deltalake.

``store`` is where files lie, ``log`` the versions of a table, ``files`` Parquet, ``samples`` rows that are samples,
``plain`` tables of others. Each may import those before it; all may import ``rows`` and what lies below it. Begin with
`log.snapshot`.
"""
