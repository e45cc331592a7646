"""Is everything there as it was written, and is everything gone that should be? Begin with `check` and `purge`.

`check` reads `inventory` (all rows) and `tensor_check` (those of one tensor); `repair` mends what needs no guess.
`purge` goes by `tensor_files` (which files), `purge_target` (which rows) and `byte_search` (is it really gone), and
signs a `receipt`. May import ``writing`` and what lies below it.
"""
