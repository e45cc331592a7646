"""Batches made in threads or processes, ahead of who takes them, within a bound of memory. Begin with `batch_threads`.

`batch_plan` says which samples a batch has, `batch_making` is what is done for one, `collation` puts samples together, `unread_sample` says what is wrong with one,
`loader_stats` counts. `process_workers` does the same by processes: each is a `worker_process`, and hands over a
`shared_batch`.
May import ``sources``, ``order`` and what lies below them.
"""
