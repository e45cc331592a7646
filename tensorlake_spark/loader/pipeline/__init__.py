"""Batches prepared in threads or processes, within a bound of memory.

Begin with `batch_threads`.
May import ``sources``, ``order`` and what lies below them.

`batch_plan` has the samples of a batch, `batch_making` makes it, and `collation` joins its samples. `unread_sample`
names a sample that cannot be read, `loader_stats` counts, and `unused_memory` gives back what was freed.
`process_workers` uses processes instead of threads: each is a `worker_process`, and hands over a `shared_batch`.
"""
