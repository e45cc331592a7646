"""A selection of a tensor becomes an array: plan, read, decode, hold against the totals. Begin with `read`.

May import ``layouts`` and ``delta``, which do not know each other, and what lies below them.
"""
