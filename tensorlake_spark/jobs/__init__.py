"""The jobs: what a command line, or a scheduler, asks of a lake; spark-submit and ``python -m tensorlake_spark``.

Each reads its options, calls the library once, prints a line of JSON, and ends with an exit code. ``frame``
is what they have in common, ``config`` their YAML files; a module for each job.
"""
