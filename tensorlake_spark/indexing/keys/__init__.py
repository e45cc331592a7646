"""What the user typed -> a selection.

Begin with `key`.
May import the modules of ``indexing`` around it, and ``errors``.

`key_parts` is one part of a key, the only place that knows negatives and Ellipsis; `key_arrays` are the index arrays:
masks, broadcasting, the place of their axes; `key_text` has the same keys as text.
"""
