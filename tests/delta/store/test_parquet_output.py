"""Data files as they are written: sealed on every store, and gone when they are given up."""

import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tensorlake_spark.delta.files.footer_checksum import read_footer
from tensorlake_spark.delta.store.parquet_output import (
    END,
    MAGIC,
    SEAL,
    ParquetOutput,
    SealedFile,
    SealedOutput,
)
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import StorageError

TABLE = pa.table({"a": list(range(1000)), "b": [b"x" * 700] * 1000})


def written(sink, path):
    with pq.ParquetWriter(sink.stream, TABLE.schema, compression="none") as writer:
        writer.write_table(TABLE, row_group_size=300)
        sink.keep_footer()
    sink.close()
    sink.close()
    assert sink.tell() == path.stat().st_size
    return path.read_bytes()


def test_a_file_of_this_machine_has_the_bytes_that_any_store_gets(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    data = written(SealedOutput(one.open("wb")), one)
    assert written(SealedFile(pa.OSFile(str(other), "wb"), str(other)), other) == data
    length, magic = END.unpack(data[-END.size :])
    assert magic == b"PAR1"
    seal = len(data) - END.size - length - SEAL.size
    assert data[seal : seal + 4] == MAGIC
    assert pq.read_table(other) == TABLE


def test_rows_come_back_in_row_groups_of_as_many_rows(tmp_path):
    storage = Storage(str(tmp_path / "t"))
    file = ParquetOutput(storage, "a.parquet", TABLE.schema, compression="none")
    file.write(TABLE, 400)
    file.write(TABLE.slice(0, 7))
    assert file.close() == (tmp_path / "t" / "a.parquet").stat().st_size
    footer = read_footer(storage, "a.parquet")
    assert [footer.row_group(g).num_rows for g in range(4)] == [400, 400, 200, 7]


@pytest.mark.parametrize("rows", [0, 10])
def test_a_file_that_is_given_up_is_deleted(tmp_path, rows):
    file = ParquetOutput(Storage(str(tmp_path)), "a.parquet", TABLE.schema)
    if rows:
        file.write(TABLE.slice(0, rows))
    file.abort()
    assert not [*tmp_path.iterdir()]


FULL = """
import resource, signal, sys
import pyarrow as pa
from tensorlake_spark.delta.store.parquet_output import ParquetOutput
from tensorlake_spark.delta.store.storage import Storage

table = pa.table({"b": [bytes(700)] * 3000})
file = ParquetOutput(Storage(sys.argv[1]), "a.parquet", table.schema, compression="none", use_dictionary=False)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    file.write(table)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    for _ in range(3):
        file.write(table)
except Exception as error:
    file.abort()
    print(type(error).__name__)
"""


def test_a_full_disk_is_the_only_error(tmp_path):
    """A writer that could not write has no footer to ask for."""
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.stdout.strip(), done.stderr) == ("StorageError", "")
    assert not [*tmp_path.iterdir()]


def test_what_is_no_parquet_gets_no_seal(tmp_path):
    for text in (b"", b"short", b"x" * 100):
        path = tmp_path / "a"
        sink = SealedFile(pa.OSFile(str(path), "wb"), str(path))
        sink.stream.write(text)
        sink.close()
        assert path.read_bytes() == text
        assert sink.tell() == len(text)


def test_a_place_that_cannot_be_written_is_an_error_of_the_store(tmp_path):
    (tmp_path / "t").write_text("a file")
    with pytest.raises(StorageError, match="refused a request"):
        ParquetOutput(Storage(str(tmp_path / "t")), "a.parquet", TABLE.schema)
