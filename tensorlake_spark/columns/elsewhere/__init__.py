"""Rows of features that are not in this process: executors encode them, in parts.

Begin with `feature_parts`, which says how a part is encoded.
May import ``columns.feature_input``, ``columns.feature_set``, ``columns.feature_values`` and what lies below them.

`rows_aside` are files of rows that wait to be encoded.
"""
