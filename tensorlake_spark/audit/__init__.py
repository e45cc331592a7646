"""Is everything there as it was written, and is everything gone that should be?

Begin with `check` and `purge`.
May import ``writing`` and what lies below it.

`check` reads all rows (`inventory`) and those of one tensor (`check_tensor`); `repair` mends what needs no guess.
`digest` is what rows hold in 32 bytes and as a tree; `hashing` makes it, `digest_difference` says what differs. `purge`
asks which files (`files_of_tensor`) and which rows (`purge_target`), looks for what is left (`byte_search`), and signs
a `receipt`.
"""
