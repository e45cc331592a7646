"""Files of others to a dataset, by executors: what ``jobs/ingest.py --dataset`` calls.

Begin with `sample_ingestion`.
May import ``datasets``, ``delta`` and what modules of ``spark.ingest`` may.

`sample_tasks` is what a task does, `sample_notes` what an earlier run has done.
"""
