"""The row of format version 1, which layouts fill and files hold.

Begin with `row`.
May import ``tensor``, ``indexing`` and ``errors``.

`checksum` is its CRC, `row_digest` its SHA-256; `metadata` is the row that describes a whole tensor; `binary_views` are
columns of bytes that are not copied, `extension_arrays` columns of Arrow's tensors and other extension types;
`row_sizes` counts the bytes of rows. layouts/FORMAT.md is the normative text.
"""
