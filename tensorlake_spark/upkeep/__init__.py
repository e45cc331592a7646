"""The same tensors in better files: fewer (`optimize`), in another order (`zorder`) or layout (`convert`).

What nobody needs any more goes: `vacuum`, `stale_uploads`. May import ``writing`` and what lies below it. Begin with
`optimize`.
"""
