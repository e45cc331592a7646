"""Mistakes in queries that every door refuses, on a dataset with ``x``, ``label`` and ``w``: the text, and what is said."""

BAD_QUERIES = [
    ("SELECT lable FROM dataset", "did you mean 'label'.*line 1, column 8"),
    ("SELECT array_men(x) FROM dataset", "did you mean 'array_mean'"),
    ("SELECT label FROM datset", "did you mean 'dataset'.*line 1, column 19"),
    ("SELECT label FROM dataset AS a JOIN dataset AS b ON a.sid = b.sid", "write a.label, b.label"),
    ("SELECT a.label FROM dataset AS a, dataset AS b, dataset AS c, dataset AS d, dataset AS e", "at most 1,000,000 are made"),
    ("SELECT x[0:2].size FROM dataset", "x\\[0:2\\] has no field 'size'.*line 1, column 8"),
    ("SELECT (array_mean(x)).size FROM dataset", "has no field 'size'"),
    ("WITH RECURSIVE r AS (SELECT 1 AS n) SELECT n FROM r", "RECURSIVE is not taken"),
    ("SELECT label FROM dataset WHERE label > :q", "the parameter :q has no value"),
    ("SELECT label FROM dataset ORDER BY 'label'", "orders nothing"),
    ("SELECT array_mean(x) AS m FROM dataset UNGROUP BY m", "'m', which is"),
    ("SELECT label FROM dataset; SELECT 1", "one statement"),
    ("ATTACH 'other.db' AS other", "begins with SELECT"),
    ("COPY dataset TO 'x.csv'", "begins with SELECT"),
    ("SET threads = 1", "begins with SELECT"),
    ("PRAGMA database_list", "begins with SELECT"),
    ("INSTALL httpfs", "begins with SELECT"),
    ("SELECT * FROM 'x.parquet'", "looks like a file"),
    ("SELECT * FROM read_csv('x.csv')", "the table function read_csv is not taken"),
    ("SELECT getenv('HOME') FROM dataset", "there is no function 'getenv'"),
]  # fmt: skip
