"""What work on a cluster needs.

Begin with `tasks`: who takes what.
May import nothing else of ``spark``.

`executor_runner` does work on a table's files by executors; `s3a` names one store for deltalake and for Hadoop;
`table_versions` are the versions that only Spark reaches; `task_errors` are errors of ours from inside of tasks;
`arguments` says which kinds of arguments public functions take.
"""
