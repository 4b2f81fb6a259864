from __future__ import annotations

from pages.ui import tables


def test_a_cell_of_a_markdown_table_is_one_cell_of_plain_text() -> None:
    table = tables.in_markdown(("a", "b"), [("1 | 2", "x\n| <b>y</b> |"), ("[z](http://z.example)", "")])
    assert table.splitlines() == [
        "| a | b |",
        "| --- | --- |",
        r"| 1 \| 2 | x \| \<b\>y\</b\> \| |",
        "| \\[z\\]\\(http\\:\u2060//z\\.example\\) |  |",
    ]
