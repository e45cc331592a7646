"""Links: samples that stay where they are, outside of the dataset. Begin with `fetching`.

`link_columns` looks columns up and fetches them. `link_rules` says what a reader allows, `link_url` what may be stored; `link_facts` is how a change is noticed.
`file_target`, `http_target` and `s3_target` read, each where one kind of link points.
May import ``datasets.types``, ``delta.store``, ``threads`` and ``errors``.
"""
