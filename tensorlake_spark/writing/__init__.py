"""What can be written, and every change of a tensor, each by one commit.

Begin with `write`, then `pipeline`.
May import ``reading`` and what lies below it.

`source` and `lake_source` are what is written, `options` how, `app_transaction` as which batch. Other changes:
`append`, and `editing` of what is there. `transaction_commit` commits what `uncommitted` holds: many changes at once,
each computed from a view of `overlay`. `estimate` says how large a tensor will be.
"""
