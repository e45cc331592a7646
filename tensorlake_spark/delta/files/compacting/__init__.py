"""Whole files anew: the same rows in fewer files, or in another order.

Begin with `compaction`.
May import the modules of ``delta.files`` around it, and what lies below them.

`merge` puts the rows of several files into one, `rewrite` leaves out some of the rows of a file.
"""
