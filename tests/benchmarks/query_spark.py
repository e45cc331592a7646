"""The relational queries in Spark: by `tensorlake_spark.spark.query`, and as plain Spark SQL on the same Delta table.

Both are asked in one session, in turns, as starting one takes longer than the queries.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import query_workloads as workloads


def main() -> None:
    """Ask, compare, and print the medians in ms."""
    given, repeat = json.loads(sys.argv[1]), int(sys.argv[2])
    from tensorlake_spark.spark import local_session, query

    session = local_session()
    session.read.format("delta").load(given["place"]).createOrReplaceTempView("dataset")
    session.read.parquet(given["cities"]).createOrReplaceTempView("cities")
    sources = {"dataset": given["place"], "cities": given["cities"]}
    found: dict[str, dict[str, list[float]]] = {"tensorlake": {}, "spark sql": {}}
    for name, sql in workloads.RELATIONAL.items():
        answers: dict[str, Any] = {}
        ways: dict[str, Callable[[], Any]] = {
            "spark sql": lambda sql=sql: session.sql(sql),  # type: ignore[misc]
            "tensorlake": lambda sql=sql: query(session, sql, **sources),  # type: ignore[misc]
        }
        for turn in range(repeat + 1):
            for way, ask in ways.items():
                start = time.perf_counter()
                answers[way] = ask().toPandas()
                if turn:  # the first one warms the machine
                    found[way].setdefault(name, []).append((time.perf_counter() - start) * 1e3)
        workloads.same(answers["tensorlake"], answers["spark sql"])
    session.stop()
    medians = {
        way: {k: statistics.median(v) for k, v in some.items()} for way, some in found.items()
    }
    print("RESULT " + json.dumps(medians))


if __name__ == "__main__":
    main()
