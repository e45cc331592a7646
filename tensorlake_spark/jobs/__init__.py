"""The jobs: what a command line, or a scheduler, asks of a lake; spark-submit and ``python -m tensorlake_spark``.

A module for each job; `command` is what they have in common, `config` their YAML files, `progress` their lines. Each
reads its options, calls the library once, and ends with a line of JSON and an exit code. May import every room.
"""
