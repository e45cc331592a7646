"""The jobs, for spark-submit and ``python -m tensorlake_spark``.

Begin with `command`: what all have in common.
May import every room.

A module for each verb: `ingest`, `optimize`, `check`, `purge`, `vacuum`, `query`. Each parses its options, calls the
library once, and ends with a line of JSON and an exit code. `config` reads YAML files, `execution` says who does the
work, `dataset_ingest` is `ingest` with samples, `job_progress` how far a job is.
"""
