"""Ingest files into a lake: images and arrays, sparse matrices, logs; --help tells how."""

import sys

from tensorlake_spark.jobs.ingest import main

if __name__ == "__main__":
    sys.exit(main())
