"""Links: samples whose files stay outside of the dataset.

Begin with `fetching`.
May import ``datasets.types``, ``delta.store``, ``threads`` and ``errors``.

`link_columns` looks up and fetches the links of a column. `link_rules` has the rules of the reader; which addresses may
be stored says ``types.link_url``. `link_facts` notices changes of a file. `file_target`, `http_target` and `s3_target`
read files of the three kinds.
"""
