"""Batches made in threads, ahead of who takes them, within a bound of memory. Begin with `batch_threads`.

`batch_making` is what is done for one batch, `collation` puts samples together, `loader_stats` counts.
May import ``sources``, ``order`` and what lies below them.
"""
