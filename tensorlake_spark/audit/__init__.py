"""Is everything there as it was written, and is everything gone that should be? Begin with `check` and `purge`.

`check` reads `inventory` (all rows) and `check_tensor` (those of one tensor); `repair` mends what needs no guess.
`purge` goes by `files_of_tensor` (which files), `purge_target` (which rows) and `byte_search` (is it really gone), and
signs a `receipt`. May import ``writing`` and what lies below it.
"""
