"""A table as the bytes of a small file: it comes back, and what is no such file is told."""

import pyarrow as pa
import pytest

from tensorlake_spark.delta.store import checksummed_table

KIND = b"tensorlake things "
SCHEMA = pa.schema([("name", pa.string()), ("n", pa.int64())])
TABLE = pa.table({"name": ["a", None], "n": [1, 2]}, schema=SCHEMA.with_metadata({"of": "x"}))


def test_what_is_packed_comes_back():
    for table in (TABLE, TABLE.slice(0, 0), pa.concat_tables([TABLE, TABLE])):
        again = checksummed_table.unpack(KIND, SCHEMA, checksummed_table.pack(KIND, table))
        assert again.equals(table)
        assert again.schema.metadata == {b"of": b"x"}


@pytest.mark.parametrize("at", [0, len(KIND) + 3, -1])
def test_a_changed_byte_is_told(at):
    whole = bytearray(checksummed_table.pack(KIND, TABLE))
    whole[at] ^= 1
    with pytest.raises(ValueError, match=r"does not begin as one|checksum does not hold"):
        checksummed_table.unpack(KIND, SCHEMA, bytes(whole))


def test_what_is_short_of_another_format_or_of_other_columns_is_told():
    whole = checksummed_table.pack(KIND, TABLE)
    with pytest.raises(ValueError, match="cut short"):
        checksummed_table.unpack(KIND, SCHEMA, whole[: len(KIND) + 5])
    with pytest.raises(checksummed_table.LaterFormat):
        checksummed_table.unpack(KIND, SCHEMA, KIND + b"2" + whole[len(KIND) + 1 :])
    with pytest.raises(ValueError, match="it has the columns name, n"):
        checksummed_table.unpack(KIND, SCHEMA.remove(0), whole)
