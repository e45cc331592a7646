"""Make a table faster to read: merge small files, sort rows, or change blocks, codec or layout.

spark-submit jobs/optimize.py --table URI [--id ID]... [--min-files N] [--max-bytes N]
spark-submit jobs/optimize.py --table URI --id ID --zorder AXIS,AXIS
spark-submit jobs/optimize.py --table URI --id ID --rechunk 1,3,256,256 | --recode CODEC | --layout NAME
spark-submit jobs/optimize.py --table DATASET [--target-bytes N]
python -m tensorlake_spark optimize URI
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from typing import Any

import tensorlake_spark as tl
from tensorlake_spark.datasets.maintenance.optimization import optimize as optimize_dataset
from tensorlake_spark.delta.files import catalog
from tensorlake_spark.delta.files.compacting.compaction import OptimizeReport, check_options
from tensorlake_spark.delta.files.runner import Run, run_here
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.errors import InvalidOptionError, InvalidTensorError
from tensorlake_spark.indexing.read_plan import size_text
from tensorlake_spark.jobs import job_progress
from tensorlake_spark.jobs.command import (
    EXIT_CODES,
    add_uri,
    carry_out,
    defaults_of,
    refuse,
    table_of,
    table_parser,
)
from tensorlake_spark.jobs.config import parse
from tensorlake_spark.jobs.execution import NOTE, execution
from tensorlake_spark.layouts import layout_of
from tensorlake_spark.layouts.coding.chain import parted
from tensorlake_spark.layouts.quantization.kinds import agrees, quantization_in, quantization_of
from tensorlake_spark.rows.metadata import Meta
from tensorlake_spark.tensor.spec import TensorSpec
from tensorlake_spark.upkeep.convert import convert
from tensorlake_spark.upkeep.optimize import optimize
from tensorlake_spark.writing.lake_source import StoredSource
from tensorlake_spark.writing.options import (
    WriteOptions,
    check_names,
    choose_layout,
    integers,
    new_spec,
)

_NOTES = """
The table is a lake or a dataset. For a dataset, the job merges small files of samples, apart columns and tiles, and
takes only the option --target-bytes of those below.

Without further options, small files are merged into files near the target size. The rows stay as they are, in storage
order. Other writers can keep working. Each new file is a commit of its own. A second run finds nothing to do.

--zorder sorts the rows of a tensor in Morton order of their boxes on the axes that you name, so that slices on inner
axes read less. It rewrites only small files and files that are not in that order, in one commit per tensor. Use
--rechunk, --recode, --layout, --quantize and --min-files in an earlier run, not together with --zorder.

--rechunk, --recode, --layout and --quantize rewrite tensors that differ from what you ask for, in one commit each.
Small files are merged after that. --recode auto takes the codec that a new tensor would get. --layout auto decides by
the share of non-zeros. Without --id, a tensor that cannot have such an option stays as it is, and the report says
why. If no tensor can have it, or one that --id names cannot, that is an error and nothing is written.

"""

parser = table_parser(
    "optimize.py", __doc__.splitlines()[0], f"{_NOTES}{NOTE}\n{EXIT_CODES.format(third='')}"
)
parser.add_argument(
    "--id", action="append", metavar="ID", help="a tensor to work on; may be repeated; default: all"
)
parser.add_argument("--zorder", metavar="AXES", help="names or numbers of axes, such as y,x")
parser.add_argument(
    "--rechunk", metavar="SHAPE", help="new shape of chunks or blocks, such as 1,3,256,256"
)
parser.add_argument("--recode", metavar="CODEC", help="new codec; auto and smallest try several")
parser.add_argument(
    "--quantize", metavar="KIND",
    help="store floats in fewer bits, as in jobs/ingest.py; 'none' stores them in full again",
)  # fmt: skip
parser.add_argument("--layout", help="new layout, or auto")
parser.add_argument(
    "--min-files", type=int, metavar="N", help="do nothing if there are fewer small files than this"
)
parser.add_argument("--target-bytes", type=int, metavar="N", help="size of the new files")
parser.add_argument("--max-bytes", type=int, metavar="N", help="read at most this much in one run")

add_uri(parser)
job_progress.add_option(parser)

_DEFAULTS = defaults_of(parser, progress=job_progress.EVERY)
_ANEW = ("rechunk", "recode", "layout", "quantize")
_OF_LAKES = ("id", "zorder", *_ANEW, "min_files", "max_bytes", "dry_run")

PIECE_BYTES = 128 << 20
"""What a task writes anew of a large tensor: about a file."""


def main(arguments: list[str] | None = None, session: Any = None) -> int:
    """Run the job and return its exit code; the last line of standard output is JSON.

    `session` stands for the one that the job would start, and stop.
    """

    def work() -> dict[str, Any]:
        args = parse(parser, arguments, _DEFAULTS)
        min_files = 2 if args.min_files is None else args.min_files
        check_options(min_files, args.target_bytes, args.max_bytes)
        beside = [n for n in (*_ANEW, "min_files") if getattr(args, n) is not None]
        if args.zorder is not None and beside:
            name = beside[0].replace("_", "-")
            raise InvalidOptionError(f"--zorder goes without --{name}; give it to a run before it")
        _check_anew(args)
        snapshot = table_of(args)
        if snapshot.kind == SAMPLES:
            refuse(args, _OF_LAKES, "lakes, and this table is a dataset")
            return _optimize_dataset(snapshot, args)
        lake = tl.open(snapshot.storage.uri, storage_options=snapshot.storage.options)
        with execution("optimize.py", session, args) as run:
            converted, skipped = _convert(lake, args, run)
            left = args.max_bytes
            if left is not None:
                left = max(1, left - sum(c["bytes"] for c in converted))
            report = optimize(
                lake._storage,
                args.id or None,
                zorder=None if args.zorder is None else args.zorder.split(","),
                min_files=min_files,
                target_bytes=args.target_bytes,
                max_bytes=left,
                dry_run=args.dry_run,
                run=run,
            )
        return _tell(args, converted, skipped, report)

    return carry_out("optimize.py", work, arguments)


def _check_anew(args: argparse.Namespace) -> None:
    """Raise InvalidOptionError for a value that no tensor can have, before a table is opened or Spark starts."""
    block = None if args.rechunk is None else integers(args.rechunk, "--rechunk")
    check_names(
        WriteOptions(
            args.layout or "auto", block, codec=args.recode or "auto", quantize=args.quantize
        )
    )
    job_progress.check(args.progress)


def _optimize_dataset(snapshot: Snapshot, args: argparse.Namespace) -> dict[str, Any]:
    """Bring files of a dataset together, and tell how many there were and are."""
    before = len(snapshot.files.path)
    after = optimize_dataset(snapshot.storage, None, args.target_bytes)
    files = len(after.files.path)
    print(
        f"{snapshot.storage.uri}: {before} data files of samples, now {files}; version {after.version}"
    )
    return {
        "status": "done",
        "files_before": before,
        "files_after": files,
        "version": after.version,
    }


def _convert(
    lake: tl.TensorLake, args: argparse.Namespace, run: Run
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Write tensors anew that are not stored as the command line wants them; return these, and what was left out.

    All are looked at before the first is written.
    """
    if all(getattr(args, name) is None for name in _ANEW):
        return [], []
    snapshot = Snapshot.open(lake._storage)
    todo, skipped = _chosen(snapshot, args)
    done = []
    for name in todo:
        meta = catalog.get(snapshot, name)
        wanted = _wanted(snapshot, meta, args)  # again: others may have changed it
        if wanted is None:
            continue
        (options, spec), nbytes = wanted, meta.totals.nbytes
        if not args.dry_run:
            pieces = 1 if run is run_here else nbytes // PIECE_BYTES + 1
            snapshot = convert(snapshot, name, options, lambda _: None, run, pieces)
            spec = catalog.get(snapshot, name).spec
        done.append(_about(spec, nbytes))
    return done, skipped


def _about(spec: TensorSpec, nbytes: int) -> dict[str, Any]:
    """Return what is told of a tensor that is written anew."""
    known = quantization_in(spec)
    return {
        "id": spec.id,
        "bytes": nbytes,
        "layout": spec.layout,
        "block_shape": spec.block_shape,
        "codec": spec.codec,
        "quantize": None if known is None else known.to_json(),
    }


def _chosen(snapshot: Snapshot, args: argparse.Namespace) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the tensors to write anew; and those that are left out, each with a reason.

    Raises
    ------
    InvalidOptionError, InvalidTensorError
        If an option does not suit a tensor that ``--id`` names, or suits none of all.
    """
    names = list(dict.fromkeys(args.id or catalog.ids(snapshot)))
    todo, skipped, wrong, left = [], [], [], args.max_bytes
    for name in names:
        meta = catalog.get(snapshot, name)
        try:
            wanted = _wanted(snapshot, meta, args)
        except (InvalidOptionError, InvalidTensorError) as error:
            if args.id:
                raise
            wrong.append(error)
            skipped.append({"id": name, "why": str(error)})
            continue
        nbytes = meta.totals.nbytes
        if wanted is None:
            continue
        if left is not None and nbytes > left:
            why = f"--max-bytes leaves {size_text(left)} of {size_text(args.max_bytes)}, and it has {size_text(nbytes)}"
            skipped.append({"id": name, "why": why})
            continue
        left = None if left is None else left - nbytes
        todo.append(name)
    if wrong and len(wrong) == len(names):
        raise wrong[0]
    return todo, skipped


def _wanted(
    snapshot: Snapshot, meta: Meta, args: argparse.Namespace
) -> tuple[WriteOptions, TensorSpec] | None:
    """Return how a tensor is written anew, and what it becomes; None if it is stored like that already.

    Raises
    ------
    InvalidOptionError, InvalidTensorError
        If what the command line wants does not suit it.
    """
    spec = meta.spec
    block = None if args.rechunk is None else integers(args.rechunk, "--rechunk")
    known = quantization_in(spec)
    quantize = known if args.quantize is None else args.quantize
    options = WriteOptions(quantize=quantize, attrs=dict(spec.attrs))
    layout = _layout(snapshot, meta, options) if args.layout == "auto" else args.layout
    stays = agrees(known, options.quantization)
    codec = args.recode if stays or args.recode is not None else "auto"
    options = replace(
        _options(spec, block, codec, layout), quantize=known if stays else options.quantize
    )
    new = new_spec(spec.id, StoredSource(snapshot, meta), options)
    is_so = (new.layout, new.block_shape, new.codec) == (spec.layout, spec.block_shape, spec.codec)
    is_so &= stays
    is_ragged = block is not None and any(len(segment) > 1 for segment in spec.segments)
    return None if is_so and not is_ragged else (replace(options, codec=parted(new.codec)[1]), new)


def _layout(snapshot: Snapshot, meta: Meta, options: WriteOptions) -> str:
    """Return the layout that suits a tensor: only between dense chunks and sparse ones it is worth a change."""
    spec = meta.spec
    chosen = choose_layout(spec.id, StoredSource(snapshot, meta), options, spec.fill)
    alike = layout_of(chosen).is_sparse == layout_of(spec.layout).is_sparse
    return spec.layout if alike else chosen


def _options(
    spec: TensorSpec, block: tuple[int, ...] | None, codec: str | None, layout: str | None
) -> WriteOptions:
    """Return how a tensor is written anew; what is not given stays as it is."""
    same = layout in (None, spec.layout)
    if block is None and same and spec.block_shape:
        block = spec.block_shape
    return WriteOptions(
        layout=spec.layout if layout is None else layout,
        block_shape=block,
        codec=(parted(spec.codec)[1] if same else "auto") if codec is None else codec,
        fill_value=spec.fill_value,
        axes=spec.axes,
        attrs=dict(spec.attrs),
        order=spec.params.get("order") if same else None,
        row_axes=spec.params.get("row_axes") if same else None,
        labels=spec.labels,
    )


def _tell(
    args: argparse.Namespace,
    converted: list[dict[str, Any]],
    skipped: list[dict[str, Any]],
    report: OptimizeReport,
) -> dict[str, Any]:
    """Print what was done, and return it for who reads it by program."""
    will = "would be" if args.dry_run else "was"
    for one in converted:
        known = quantization_of(one["quantize"])
        more = "" if known is None else f", {known}"
        print(
            f"{one['id']}: {size_text(one['bytes'])} {will} written anew as {one['layout']}{more}"
        )
    for one in skipped:
        print(f"{one['id']}: stays as it is: {one['why']}")
    print(
        f"{report.files_before} file(s) of {size_text(report.bytes_before)} "
        f"{'would become' if args.dry_run else 'became'} {report.files_after}"
    )
    status = "planned" if args.dry_run else "done"
    return {"status": status, "converted": converted, "skipped": skipped, **asdict(report)}
