"""The plan of a query, made before anything is read.

Begin with `queries`, which turns a text into a `plan`.
May import ``query.sources``, ``query.functions`` and ``query.language``.

`known_plans` keeps plans of queries that are asked again. `selects` plans one SELECT: `select_text` reads its text, and
`select_steps` makes its steps. `joins` plans its FROM, and `unions` joins several queries. `names` resolves names.
`tensor_work` separates the work of NumPy from that of DuckDB.
"""
