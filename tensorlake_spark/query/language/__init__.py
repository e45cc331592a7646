"""The query language: from a text to a checked tree.

Begin with `parsing`.
May import ``functions`` and what is below it.

`dialect` is SQL with slices and TQL's clauses, and `clauses` are the nodes of these. `harmless` has the lists of what a
query may use. `class_names` makes numbers of the names of classes, and `listed_values` puts the values of lists after
IN. `mistakes` show the place of a mistake.
"""
