"""Delta tables that are neither lakes nor datasets, read as what they are.

Begin with `plain_table`.
May import ``delta.log`` and ``delta.store``.

`plain_table` opens one at a version.
"""
