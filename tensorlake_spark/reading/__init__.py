"""A selection of a tensor becomes an array.

Begin with `read`: plan, read, decode, hold against the totals.
May import ``layouts`` and ``delta``, which do not know each other, and what lies below them.

`output` makes an array of what a caller gives for the result; `gaps` finds what no row covers.
`conversions` make an array, a number, a truth or a sequence of what can be read.
"""
