"""The benchmark of queries: ours beside DuckDB, Spark SQL, NumPy by hand, Deep Lake and LanceDB.

``make bench-query`` writes what is asked once for each part, and prints a table after it. Every figure comes from a
fresh process, who answers takes turns, and answers are compared. ``--parts`` names what is to run, ``--stores`` who
takes part, ``--count`` makes it small.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import query_engines
import query_report
import query_workloads as workloads
import sample_media
from harness import load_packages, machine, positive, start_child, tell, versions

SCRIPT = Path(__file__)
PARTS = (*query_engines.ENGINES, "spark")
COUNTS = {"relational": workloads.ROWS, "nearest": workloads.VECTORS, "spark": workloads.ROWS}
PHOTOS = sample_media.KINDS["photos"].count


def child(part: str, engine: str, given: str) -> dict[str, Any]:
    """Do what a fresh process does: write what a part asks, or let one answer."""
    load_packages("tensorlake_spark")
    made = json.loads(given)
    if engine == "write":
        return workloads.write(part, made["count"], Path(made["media"]), Path(made["work"]))
    return query_engines.ENGINES[part][engine][0](made)


def compare(
    part: str, names: list[str] | None, repeat: int, given: dict[str, Any]
) -> dict[str, Any]:
    """Let all answer, interleaved round by round; who fails is left out from then on."""
    chosen = [name for name in query_engines.ENGINES[part] if names is None or name in names]
    samples: dict[str, dict[str, list[float]]] = {name: {} for name in chosen}
    errors: dict[str, str] = {}
    made = start_child(SCRIPT, [part, "write", json.dumps(given)])
    if isinstance(made, str):
        return {"medians": {}, "errors": {f"{part}, write": made}, "count": given["count"]}
    for number in range(repeat):
        turn = number % len(chosen) if chosen else 0
        for name in chosen[turn:] + chosen[:turn]:
            if name in errors:
                continue
            out = start_child(SCRIPT, [part, name, json.dumps(made)])
            if isinstance(out, str):
                errors[name] = out
                print(f"{part}: {name} failed: {out}", file=sys.stderr)
                continue
            for figure, value in out.items():
                samples[name].setdefault(figure, []).append(value)
        print(f"{part}: round {number + 1} of {repeat}", file=sys.stderr)
    medians = {
        name: {figure: statistics.median(values) for figure, values in found.items()}
        for name, found in samples.items()
    }
    return {"medians": medians, "samples": samples, "errors": errors, "count": given["count"]}


def spark(repeat: int, given: dict[str, Any]) -> dict[str, Any]:
    """Ask both in Spark, by the Python that has it: not the one of the peers."""
    made = start_child(SCRIPT, ["relational", "write", json.dumps(given)])
    if isinstance(made, str):
        return {"medians": {}, "errors": {"spark, write": made}, "count": given["count"]}
    python = SCRIPT.resolve().parents[2] / ".venv" / "bin" / "python"
    command = [
        str(python if python.exists() else os.environ.get("BENCH_SPARK_PYTHON", sys.executable)),
        str(SCRIPT.with_name("query_spark.py")), json.dumps(made), str(repeat),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [line[7:] for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if done.returncode or not lines:
        said = (done.stderr.strip().splitlines() or ["nothing said"])[-1]
        return {"medians": {}, "errors": {"spark": said}, "count": given["count"]}
    return {"medians": json.loads(lines[-1]), "errors": {}, "count": given["count"]}


def main() -> int:
    """Run the parts that were asked for; the exit code is 1 if somebody failed."""
    if sys.argv[1:2] == ["--child"]:
        tell(child(*sys.argv[2:5]))
        sys.stdout.flush()
        os._exit(0)  # threads that peers leave behind would abort an orderly end
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--parts", default=",".join(PARTS), help="names with commas")
    parser.add_argument("--stores", default="all", help="names with commas, or all")
    parser.add_argument("--repeat", type=positive, default=3)
    parser.add_argument("--count", type=positive, help="samples at most, of each kind")
    parser.add_argument("--out", type=Path, default=Path("bench-output"))
    args = parser.parse_args()
    parts = args.parts.split(",")
    if unknown := set(parts) - set(PARTS):
        parser.error(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    names = None if args.stores == "all" else args.stores.split(",")
    known = {name: made for found in query_engines.ENGINES.values() for name, made in found.items()}
    if unknown := set(names or ()) - set(known):
        parser.error(f"no store {', '.join(unknown)}; there are {', '.join(known)}")
    args.out.mkdir(parents=True, exist_ok=True)
    alone = "make bench-query" if len(sys.argv) == 1 else ""
    report: dict[str, Any] = {
        **machine(),
        "repeat": args.repeat,
        "versions": versions([made[1] for made in known.values()] + ["sqlglot", "simplejpeg", "pyarrow", "deltalake"]),
        "settings": {
            f"{part}: {name}": made[2]
            for part, found in query_engines.ENGINES.items() if part in parts
            for name, made in found.items() if names is None or name in names
        },
        "command": alone or " ".join([f"python tests/benchmarks/{SCRIPT.name}", *sys.argv[1:]]),
        "parts": {},
    }  # fmt: skip
    media = args.out.resolve() / "media"
    with tempfile.TemporaryDirectory(
        prefix="bench-query-", dir=os.environ.get("BENCH_WORK")
    ) as folder:
        for part in parts:
            whole = COUNTS.get(part, PHOTOS)
            given = {"count": min(whole, args.count or whole), "media": str(media), "work": folder}
            found = (
                spark(args.repeat, given)
                if part == "spark"
                else compare(part, names, args.repeat, given)
            )
            report["parts"][part] = found
            # After every part: what is measured stays, whatever happens to the next.
            (args.out / "query.json").write_text(json.dumps(report, indent=1))
            (args.out / "query.md").write_text(query_report.text(report))
            print("\n".join(query_report.part(part, found)), flush=True)
            if part in ("nearest", "parse"):
                shutil.rmtree(Path(folder) / part, ignore_errors=True)
    print("\n".join(query_report.verdicts(report)))
    return 1 if any(found.get("errors") for found in report["parts"].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
