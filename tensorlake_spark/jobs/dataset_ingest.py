"""Samples to a dataset: what ``ingest.py --dataset`` does."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from tensorlake_spark.datasets.samples.appending import batch_of
from tensorlake_spark.datasets.sources.source_kinds import check_kind, source_of
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import InvalidOptionError
from tensorlake_spark.indexing.read_plan import size_text
from tensorlake_spark.jobs import job_progress
from tensorlake_spark.jobs.command import pairs, storage_options
from tensorlake_spark.spark.cluster.s3a import completed, settings_of_session
from tensorlake_spark.spark.cluster.task_errors import quiet_tasks
from tensorlake_spark.spark.ingest.ingestion import job_session
from tensorlake_spark.spark.ingest.outcome import PLANNED, REPEATED
from tensorlake_spark.spark.ingest.samples.sample_ingestion import (
    SampleOptions,
    SampleOutcome,
    ingest_samples,
    repeated_batch,
)
from tensorlake_spark.spark.session import local_session

_SHARED = {
    "apart", "config", "dataset", "debug", "dry_run", "kind", "progress", "resume", "skip_bad", "source_option",
    "sources", "storage_option", "txn_app_id", "txn_version",
}  # fmt: skip

_ELSEWHERE = {"kind": "--kind", "path": "SOURCE", "storage_options": "--storage-option"}
"""Arguments of `source_of` that are no options of a kind, and what gives them."""


def ingest_dataset(
    args: argparse.Namespace, defaults: Mapping[str, Any], session: Any
) -> dict[str, Any]:
    """Add the samples of a source to a dataset, print what was done, and return it for who reads it by program.

    Parameters
    ----------
    args : argparse.Namespace
        The command line.
    defaults : mapping
        What holds where it says nothing.
    session : SparkSession, optional
        Stands for the one that the job would start, and stop.
    """
    for name, value in vars(args).items():
        if name not in _SHARED and value != defaults.get(name):
            option = name.replace("_", "-")
            raise InvalidOptionError(f"--{option} is for tensors; it means nothing with --dataset")
    if len(args.sources) != 1:
        raise InvalidOptionError(
            f"--dataset takes one SOURCE, not {len(args.sources)}: a folder, a file, a glob in quotation marks, or "
            "names with braces"
        )
    options = {
        name: _value(text) for name, text in pairs(_named(args.source_option), "--with").items()
    }
    for name, instead in _ELSEWHERE.items():
        if name in options:
            raise InvalidOptionError(f"--with {name!r} is no option of a kind; use {instead}")
    stored = storage_options(args)
    batch = batch_of(args.txn_app_id, args.txn_version)
    sample_options = SampleOptions(
        stored, args.dry_run, args.resume, args.skip_bad, tuple(args.apart), batch
    )
    check_kind(args.kind or "auto")
    Storage(args.dataset, stored)
    job_progress.check(args.progress)
    used = session or job_session(local_session)
    try:
        with (
            quiet_tasks(used, not args.debug),
            job_progress.telling("ingest.py", used, args.progress),
        ):
            kind = args.kind or "auto"
            outcome = repeated_batch(used, args.dataset, sample_options)
            if outcome is None:
                reached = completed(stored, settings_of_session(used), args.sources[0])
                source = source_of(args.sources[0], kind, storage_options=reached, **options)
                kind = source.kind
                outcome = ingest_samples(used, source, args.dataset, sample_options)
    finally:
        if session is None:
            used.stop()
    return _told(outcome, kind, batch)


def check_no_samples(args: argparse.Namespace) -> None:
    """Raise InvalidOptionError if an option of samples is given without a dataset."""
    for name, value in (("kind", args.kind), ("with", args.source_option), ("apart", args.apart)):
        if value:
            raise InvalidOptionError(f"--{name} is for samples; it needs --dataset URI")


def _told(outcome: SampleOutcome, kind: str, batch: tuple[str, int] | None) -> dict[str, Any]:
    for said in outcome.bad:
        print(f"left out {said}")
    if outcome.reused:
        print(f"{outcome.reused} of {outcome.pieces} piece(s) were written by an earlier run")
    columns = {name: str(type_) for name, type_ in outcome.schema.items()}
    if outcome.status == PLANNED:
        print(f"{kind}: {outcome.pieces} piece(s), {size_text(outcome.source_bytes)}")
        print("\n".join(f"  {name}: {type_}" for name, type_ in columns.items()))
        print("dry run: nothing was written")
    elif outcome.status == REPEATED:
        same = "these files are" if batch is None else "this batch is"
        print(f"{same} in the dataset already; nothing was changed")
    else:
        more = f", {outcome.left_out} were left out" if outcome.left_out else ""
        print(f"{outcome.samples} sample(s) are in version {outcome.version}{more}")
    return {
        "status": outcome.status,
        "kind": kind,
        "columns": columns,
        "pieces": outcome.pieces,
        "reused": outcome.reused,
        "source_bytes": outcome.source_bytes,
        "samples": outcome.samples,
        "left_out": outcome.left_out,
        "bad": list(outcome.bad),
        "version": outcome.version,
    }


def _named(texts: list[str]) -> list[str]:
    """Return options of a source with their names as Python has them.

    Examples
    --------
    >>> _named(["image-format=a-b"])
    ['image_format=a-b']
    """
    parts = (text.partition("=") for text in texts)
    return [f"{name.replace('-', '_')}{sign}{value}" for name, sign, value in parts]


def _value(text: str) -> Any:
    """Return a value that is JSON as what it is, any other as text.

    Examples
    --------
    >>> _value("true"), _value('["a"]'), _value("train")
    (True, ['a'], 'train')
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
