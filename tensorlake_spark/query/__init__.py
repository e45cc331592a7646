"""Queries: SQL on datasets, tensors and tables.

``language/`` reads the text; ``functions/`` has what is computed of tensors.

May import all rooms below it: `datasets`, `lake` and further down. Begin with `language`.
"""
