"""Where the bytes are: rows <-> files of a Delta table. The only room that imports deltalake.

``storage`` where a table lies; ``snapshot`` its files at one version; ``footer`` what lies in which row
group; ``catalog`` the metadata rows; ``scan`` plan and read; ``write`` rows to files; ``commit`` the
commit rule; ``transactions`` what it goes by; ``compact`` few files instead of many; ``maintenance`` vacuum;
``folder`` what lies beside the log; ``inspect`` a file held against it; ``residue`` what is left of bytes.
"""
