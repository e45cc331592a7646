"""The names of the room are imported when they are used."""

import subprocess
import sys

import tensorlake_spark.loader as room


def test_the_room_loads_nothing():
    code = "import tensorlake_spark.loader as l, sys; print(sorted({'numpy', 'pyarrow', 'PIL'} & set(sys.modules)), l.__all__[0])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", room.__all__[0]]


def test_every_name_is_there():
    for name in room.__all__:
        assert getattr(room, name).__name__ == name
