"""Tables for notebooks."""

from tensorlake_spark.html_table import html_table


def test_names_and_values_are_escaped():
    text = html_table({"<b>": "a & b", "shape": (3, 4)})
    assert "&lt;b&gt;" in text
    assert "a &amp; b" in text
    assert "(3, 4)" in text
    assert "<b>" not in text


def test_a_row_for_each_name_in_order():
    text = html_table({"b": 1, "a": None})
    assert text.count("<tr>") == text.count("</tr>") == 2
    assert text.index(">b<") < text.index(">a<")
    assert html_table({}) == "<table></table>"
