"""Batches made in threads or processes, ahead of who takes them, within a bound of memory. Begin with `batch_threads`.

`batch_making` is what is done for one batch, `collation` puts samples together, `loader_stats` counts.
`process_workers` hands out work to processes: each runs `worker_process`, is told a `batch_plan`, and gives back a
`shared_batch`. May import ``sources``, ``order`` and what lies below them.
"""
