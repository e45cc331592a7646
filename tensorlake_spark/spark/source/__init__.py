"""``format("tensor")``.

Begin with `data_source`, which routes to ``read`` and ``write``.
May import ``spark.cluster``, nothing of ``functions`` or ``ingest``.

`source_options` are parsed once, `schemas` is what Spark sees; `sparse_blocks`, `cell_columns` and `label_columns`
serve both halves; `commit_message` is what tasks tell the driver, `task_notes` what they leave for a later run. Tasks
that write features tell each other by a `feature_relay` where their rows begin, and the driver by
`feature_parts_written` what they encoded.
"""

from typing import TYPE_CHECKING

from tensorlake_spark import moved

if not TYPE_CHECKING:  # for mypy no name is there but those of the folder
    __getattr__ = moved.names_of(__name__)
