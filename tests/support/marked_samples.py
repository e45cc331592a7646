"""Samples of a dataset, or rows of a lake, that a deletion vector marks as deleted, without Spark."""

import base64
import json
import struct

from tensorlake_spark.delta.log.actions import commit_name, read_actions
from tensorlake_spark.delta.log.requirements import SAMPLES
from tensorlake_spark.delta.log.snapshot import Snapshot
from tensorlake_spark.delta.store.storage import Storage

Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"


def mark(storage: Storage, row: int, kind: str = SAMPLES) -> None:
    """Mark a row of the first file that the newest commit adds, by a commit of its own as Spark makes it."""
    version = Snapshot.open(storage, kind=kind).version
    said = [*read_actions(storage, commit_name(version), ("add",))]
    add = next(action for kind, action in said if kind == "add")
    assert "deletionVector" not in add, "a vector that is there would have to be read, and removed"
    roaring = struct.pack("<IIHHIH", 12346, 1, 0, 0, 16, row)
    bits = struct.pack("<IQI", 1681511377, 1, 0) + roaring
    text = base64.b85encode(bits + bytes(-len(bits) % 4)).decode()
    vector = {
        "storageType": "i",
        "pathOrInlineDv": text.translate(str.maketrans(B85, Z85)),
        "sizeInBytes": len(bits),
        "cardinality": 1,
    }
    features = {f"{side}Features": ["deletionVectors"] for side in ("reader", "writer")}
    gone = {"path": add["path"], "dataChange": True, "deletionTimestamp": add["modificationTime"]}
    actions = [
        {"commitInfo": {"operation": "DELETE", "timestamp": add["modificationTime"]}},
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}},
        {"remove": gone},
        {"add": {**add, "deletionVector": vector}},
    ]
    storage.put_whole(commit_name(version + 1), "\n".join(map(json.dumps, actions)).encode())
