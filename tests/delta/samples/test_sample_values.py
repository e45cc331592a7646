"""Payloads of samples where they lie."""

from stored_rows import everything

from tensorlake_spark.delta.files.payload import distant_spans, nested_spans


def test_one_payload(stored):
    leaf = stored.leaf(("g", "image", "data"))
    groups = everything().column("g").to_pylist()
    for number in range(0, 800, 13):
        wanted = ((groups[number] or {}).get("image") or {}).get("data")
        found = stored.value(number, leaf)
        assert (None if found is None else bytes(found)) == wanted


def test_values_are_found_alike_with_and_without_their_bytes(stored):
    """What a store is asked for, value by value, leads to the places that a whole column chunk shows."""
    leaf = stored.leaf(("g", "image", "data"))
    for file in (stored.files[0], stored.files[1]):
        for group in range(file.metadata.num_row_groups):
            chunk = file.chunk(group, leaf)
            data = memoryview(file.region(chunk)).cast("B")
            near = nested_spans(data, chunk.num_values, leaf.depth)
            far = distant_spans(
                lambda place, nbytes, data=data: data[place : place + nbytes],
                len(data),
                chunk.num_values,
                leaf.depth,
            )
            assert near == far
            assert {*near[1]} >= {leaf.depth}
