"""Where bytes lie: `storage` (a URI with its options), `options`, `timeouts`, `ranges` of objects, `staging`.

May import ``rows`` and ``errors``, nothing else of ``delta``. `paths` and `redaction` guard what comes in and goes
out. Begin with `storage`.
"""
