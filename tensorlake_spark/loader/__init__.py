"""From the lake into training: batches of samples in an order that is the same everywhere. Begin with `order`.

`order` says which sample comes when, and for whom. May import ``datasets`` and what lies below it.
"""
