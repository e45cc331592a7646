"""The row of format version 1, which layouts fill and files hold: `row`, its `checksum`, the `metadata` row.

May import ``tensor``, ``indexing`` and ``errors``. Begin with `row`; layouts/FORMAT.md is the normative text.
"""
