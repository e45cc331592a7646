"""Samples that lie far from each other, read again and again.

Begin with `scattered_rows`.
May import the modules of ``delta.samples`` around it, and what lies below them.

`payload_spans` keeps where the payloads of a file lie, and `payload_places` reads payloads of local files straight into
memory that somebody has.
"""
