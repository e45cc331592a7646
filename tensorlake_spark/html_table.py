"""How an object shows itself in a notebook."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any


def html_table(rows: Mapping[str, Any]) -> str:
    """Return a table with a row for each name and its value, both escaped.

    Examples
    --------
    >>> html_table({"shape": (3,)}).count("<tr>")
    1
    """
    left = "style='text-align:left'"
    body = (
        f"<tr><th {left}>{html.escape(name)}</th><td {left}>{html.escape(str(value))}</td></tr>"
        for name, value in rows.items()
    )
    return f"<table>{''.join(body)}</table>"
