"""The language of queries: from a text to a tree that is known to be harmless.

`dialect` is SQL with slices and TQL's clauses, `clauses` are their nodes, `harmless` lists what a query may have,
`parsing` reads a text, `mistakes` show where it is wrong.

May import `functions` and what is below it. Begin with `parsing`.
"""
