"""One random sample on S3, each request 20 ms longer: round trips, requests and bytes, beside the tables of peers."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))  # the server is there
sys.path.insert(0, str(Path(__file__).resolve().parent))

import sample_media
from harness import start_child, tell
from s3_road import S3Road, requests, round_trips
from s3server import IDENTITY, REGION, SECRET, S3Server
from sample_engines import STORES, rehearse

BUCKET = "bucket"
DELAY_S = 0.02
COUNT = 8_000
AGAIN = 5
NAMES = ("tensorlake", "deeplake", "lance", "lance 2.0")


def options_of(endpoint: str) -> dict[str, str]:
    """Return what reaches the server under this URL."""
    return {
        "AWS_ENDPOINT_URL": endpoint, "AWS_ACCESS_KEY_ID": IDENTITY, "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": REGION, "AWS_ALLOW_HTTP": "true",
    }  # fmt: skip


def child(name: str, act: str, endpoint: str, source: str) -> dict[str, Any]:
    """Write a store, or read of it: opened and one sample, another one, all labels."""
    store = STORES[name](f"s3://{BUCKET}/{name.replace(' ', '-')}", options_of(endpoint))
    media = sample_media.load(Path(source))
    rehearse(name, media)
    if act == "write":
        store.write(media)
        return {}
    out: dict[str, Any] = {}

    def took(what: str, work: Callable[[], Any], wanted: Any) -> None:
        requests(endpoint)
        start = time.perf_counter()
        found = work()
        seconds = time.perf_counter() - start
        seen = requests(endpoint)
        if not np.array_equal(found, wanted):
            raise AssertionError(f"{what}: another answer")
        new = [round_trips(seen), len(seen), sum(r.nbytes for r in seen) / 1e6, seconds * 1e3]
        # One that starts late, for the machine was busy, is taken for one that waited.
        out[what] = [min(a, b) for a, b in zip(out.get(what, new), new, strict=True)]

    rng = np.random.default_rng(1)
    picks = rng.integers(len(media.images), size=AGAIN + 1).tolist()
    handle: Any = None

    def cold() -> bytes:
        nonlocal handle
        handle = store.open()
        return bytes(store.one(handle, picks[0]))  # type: ignore[misc]

    took("open and one sample", cold, media.images[picks[0]])
    for k in picks[1:]:
        took("another sample", lambda: bytes(store.one(handle, k)), media.images[k])  # type: ignore[misc]  # noqa: B023
    took("all labels", lambda: store.labels(handle), media.labels)  # type: ignore[misc]
    return out


def run(count: int, media: Path, work: Path) -> dict[str, Any]:
    """Write every store without the delay, and read it over the road."""
    source = sample_media.cached("photos", count, media)
    lines = [
        f"{count:,} photographs, each request {DELAY_S * 1e3:.0f} ms longer.", "",
        "| | | round trips | requests | MB | ms |", "|---|---|---|---|---|---|",
    ]  # fmt: skip
    errors, trips = {}, None
    with S3Server(work / "s3") as server, S3Road(server.port, DELAY_S) as road:
        server.make_bucket(BUCKET)
        for name in NAMES:
            given = [name, "write", server.endpoint, str(source)]
            found = start_child(Path(__file__), given)
            if not isinstance(found, str):
                given = [name, "read", road.endpoint, str(source)]
                found = start_child(Path(__file__), given)
            if isinstance(found, str):
                errors[name] = found
                lines.append(f"| {name} | failed: {found.replace('|', '/')[:150]} | | | | |")
                continue
            for what, (t, asked, mb, ms) in found.items():
                lines.append(f"| {name} | {what} | {t} | {asked} | {mb:.3f} | {ms:.0f} |")
            if name == "tensorlake":
                trips = found["another sample"][0]
    verdicts = (
        [] if trips is None else [("S3: round trips of one random sample", trips, None, "", 2)]
    )
    return {"lines": lines, "verdicts": verdicts, "errors": errors}


if __name__ == "__main__":
    tell(child(*sys.argv[2:6]))
