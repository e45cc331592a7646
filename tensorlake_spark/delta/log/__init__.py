"""The versions of a table: `snapshot` reads one, `commit` makes the next; one module for each noun of the protocol.

May import ``delta.store``, never ``delta.files``. `deletion_vectors`, `history`, `tags`, `time_travel` and
`transactions` are what the log says beside its files. Begin with `snapshot`.
"""
