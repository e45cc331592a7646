"""The seal of a footer: every changed byte of it is found, and files without one are read."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tensorlake_spark.delta.files.footer_checksum import read_footer
from tensorlake_spark.delta.store.parquet_output import MAGIC, SealedOutput
from tensorlake_spark.delta.store.storage import Storage
from tensorlake_spark.errors import CorruptDataError

TABLE = pa.table({"a": list(range(1000))})


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.parquet"
    output = SealedOutput(path.open("wb"))
    with pq.ParquetWriter(output.stream, TABLE.schema) as writer:
        writer.write_table(TABLE)
        output.keep_footer()
    output.close()
    assert output.tell() == path.stat().st_size
    return path


def tail_of(path):
    """A reader of last bytes, as for a file in an object store."""
    return lambda size: pa.py_buffer(path.read_bytes()[-size:])


def test_any_reader_reads_a_sealed_file(path):
    assert pq.read_table(path) == TABLE
    assert MAGIC in path.read_bytes()
    assert read_footer(Storage(str(path.parent)), path.name).num_rows == 1000


def test_a_file_without_a_seal_is_read(path):
    pq.write_table(TABLE, path)
    assert read_footer(Storage(str(path.parent)), path.name).num_rows == 1000


def test_every_changed_byte_of_the_footer_is_found(path):
    whole = path.read_bytes()
    storage = Storage(str(path.parent))
    seal = whole.index(MAGIC)
    for place in range(
        seal + 4, len(whole) - 8
    ):  # the checksum, then the footer without its length
        changed = bytearray(whole)
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises(CorruptDataError, match="footer of the file fails its checksum"):
            read_footer(storage, path.name)


def test_a_file_that_is_cut_short_is_none(path):
    path.write_bytes(b"PAR1")
    with pytest.raises(CorruptDataError, match="the file has 4 bytes, which is no Parquet file"):
        read_footer(Storage(str(path.parent)), path.name)
