"""What a query does, found out before anything is read.

`queries` turns a text into a `plan`; `selects` one SELECT, whose text `select_text` reads and whose steps
`select_steps` makes; `joins` are its FROM, `unions` put queries together. `names` resolves names, `tensor_work` tells
what NumPy computes from what DuckDB does.

May import ``query.sources``, ``query.functions`` and ``query.language``. Begin with `queries`.
"""
