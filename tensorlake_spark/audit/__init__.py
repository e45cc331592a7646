"""What a table holds, looked at row by row: is it what was written, and is what should be gone really gone?

``check`` findings of files, rows and totals, and ``mend`` what needs no guess; ``inventory`` the rows of all
files, ``tensor_check`` those of a tensor. ``purge`` a tensor or a part of it out of every file, ``traces`` which
files have something of it, ``held`` which rows, ``receipt`` what was done, sealed.
"""
