"""Where bytes lie.

Begin with `storage`: a URI with its options.
May import ``rows`` and what lies below it, nothing else of ``delta``.

`parquet_output` writes a data file; `payload_lengths` are those that its footer has, `footer_index` says where in it
row groups are. `memory_maps` keeps local files mapped; `checksummed_table` is a table in a small file. `store_options`
and `timeouts` are what clients of a store take; `ranges` reads parts of objects; `staging` keeps the notes of a writer
that is not done. `paths` guards what comes in, `redaction` what goes out. `s3_objects` is what only boto3 does.
"""
