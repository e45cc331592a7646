"""Delta tables that are neither lakes nor datasets, read as what they are.

`plain_table` opens one at a version. May import ``delta.log`` and ``delta.store``. Begin with `plain_table`.
"""
