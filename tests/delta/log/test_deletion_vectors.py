"""Deletion vectors belong to files by their whole paths."""

from tensorlake_spark.delta.log.deletion_vectors import paths_of


def test_a_file_is_named_by_its_whole_path():
    """A deletion vector of one must not hide rows of another that has its name in another folder."""
    paths = ["a/p.parquet", "b/a/p.parquet", "q%20r.parquet", "s t.parquet"]
    roots = ["file:///lake", "s3://bucket/a lake", "/lake"]
    for root in roots:
        uris = [
            f"{root}/b/a/p.parquet",
            f"{root}/a/p.parquet",
            f"{root}/q%20r.parquet",
            f"{root}/s%20t.parquet",
        ]
        assert paths_of(uris, paths) == ["b/a/p.parquet", "a/p.parquet", *paths[2:]]
        assert paths_of([f"{root}/c/other.parquet", f"{root}/p.parquet"], paths) == [None, None]
