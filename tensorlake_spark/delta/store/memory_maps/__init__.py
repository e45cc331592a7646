"""Local files as memory.

Begin with `mapped_files`, which keeps maps of files.
May import ``delta.store.storage`` and what lies below it.

`mapped_pages` gives back memory that a map no longer needs.
"""
