"""Which files a version has: the log, read from its start or its last checkpoint.

Begin with `live_files`.
May import ``delta.log.actions``, ``delta.log.requirements`` and what lies below them.

`replay` follows the commits by itself, without deltalake; `remote_log` brings the log from an object store;
`later_version` reads on from a version that is known; `past_files` reads the log once for many versions.
"""
