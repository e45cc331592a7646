"""Where the bytes are: rows <-> files of a Delta table.

Begin with `log.snapshot`.
May import ``rows`` and what lies below it; each of its rooms, those that are named before it.

This is the only room that imports deltalake. ``store`` is where files lie, ``log`` the versions of a table, ``files``
Parquet, ``samples`` rows that are samples, ``plain`` tables of others.
"""
