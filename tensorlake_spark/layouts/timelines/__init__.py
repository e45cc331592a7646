"""Samples that slide, for the layout `window`.

Begin with `timeline`, the form in which they are stored.
May import ``coding`` and ``errors``.

`sliding` is the writer's search for them; a reader needs nothing of it.
"""
