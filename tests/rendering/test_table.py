"""Tables on the terminal and as HTML."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from io import StringIO
from math import nan

import pytest
from rich.console import Console

from leakboard.leaderboards.rendering import (
    Cell,
    Column,
    Table,
    TerminalTable,
    html_table,
    latex_document,
    latex_table,
    leakage_cell,
    markdown_table,
)
from leakboard.leaderboards.rendering.latex import escape_latex
from leakboard.leaderboards.tables.intervals import MISSING, Interval

COLUMNS = (
    Column("defense"),
    Column("leakage", align="right"),
    Column("points lost", align="right"),
    Column("also gives away", optional=True),
    Column("attack", optional=True),
)
TABLE = Table(
    "Who hides the inputs of sst2?",
    COLUMNS,
    [
        [
            Cell("SAP, η = 110", muted=True),
            leakage_cell(Interval(0.463, 0.44, 0.491)),
            Cell("2.1 [1.5, 2.8]"),
            "labels 98 %",
            Cell("vocab-matching", detail="activations"),
        ],
        "more than 3 points",
        ["<b>RAPT</b> & co", leakage_cell(MISSING), "16.3", "–", "embedding-inversion-adaptive"],
    ],
    notes=["3 seeds, 95 % intervals."],
)


def printed(table: Table, width: int) -> str:
    console = Console(width=width, file=StringIO())
    console.print(TerminalTable(table))
    return console.file.getvalue()


@pytest.mark.parametrize("width", [56, 80, 120])
def test_a_table_fits_the_terminal_and_tears_no_word(width):
    text = printed(TABLE, width)
    assert max(map(len, text.splitlines())) <= width
    for row in TABLE.rows:
        cells = [] if isinstance(row, str) else TABLE.cells(row)
        assert not [word for cell in cells for word in cell.text.split() if word not in f"{text}–"]
    assert "more than 3 points" in text
    assert "3 seeds, 95 % intervals." in text


def test_optional_columns_fold_below_their_row_the_last_first():
    wide, narrow = printed(TABLE, 120).splitlines(), printed(TABLE, 70).splitlines()
    assert "also gives away" in wide[1]
    assert wide[1].split("  ")[-1].strip() == "attack"
    assert "attack" not in narrow[1]
    assert "  attack embedding-inversion-adaptive" in narrow
    assert not [line for line in narrow if "also gives away –" in line]  # nothing to say


def test_no_interval_is_torn():
    for width in (42, 56, 80, 120):
        text = printed(TABLE, width)
        assert "46 % [44, 49]" in text
        assert "2.1 [1.5, 2.8]" in text


def test_numbers_stand_below_each_other():
    lines = printed(TABLE, 120).splitlines()
    ends = {
        line.index(text) + len(text)
        for line in lines
        for text in ("leakage", "46 % [44, 49]", "not certified")
        if text in line
    }
    assert len(ends) == 1


def test_what_stands_in_brackets_is_no_markup():
    table = Table("t", [Column("a")], [["[red]a[/red]"]])
    assert "[red]a[/red]" in printed(table, 80)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def tags(text: str, name: str) -> list[dict[str, str | None]]:
    parser = Tags()
    parser.feed(text)
    return [attributes for tag, attributes in parser.found if tag == name]


def test_html_is_escaped_and_says_what_heads_what():
    text = str(html_table(TABLE))
    assert "&lt;b&gt;RAPT&lt;/b&gt; &amp; co" in text
    assert "<b>RAPT" not in text
    assert [one.get("scope") for one in tags(text, "th")] == [
        *["col"] * 5,
        "row",
        "rowgroup",
        "row",
    ]
    assert len(tags(text, "caption")) == 1
    assert tags(text, "th")[5]["class"] == "muted"


def test_a_bar_is_as_long_as_the_share_and_a_missing_one_is_left_out():
    (bar,) = (one for one in tags(str(html_table(TABLE)), "span") if one.get("class") == "bar")
    assert bar["style"] == "--value:46.3%;--low:44.0%;--high:49.1%"
    assert bar["aria-hidden"] == "true"
    alone = Table("t", [Column("a")], [[leakage_cell(Interval(1.02, nan, nan))]])
    assert "--value:100.0%;--low:100.0%;--high:100.0%" in html_table(alone)


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="1 entries for 2 columns"):
        Table("t", [Column("a"), Column("b")], [["one"]])


HOSTILE = "[\\\\input{/etc/passwd}] % & $x_1$ #1 ~ ^ | <b> `c` *d*\n\\\\\\\\ \x1b η³ −1"
PRINTED = Table(HOSTILE, COLUMNS[:3], [[HOSTILE, "46 % [44, 49]", Cell("2.1", HOSTILE)]], [HOSTILE])
COMMANDS = {
    *("begin", "end", "centering", "caption", "label", "toprule", "midrule", "bottomrule"),
    *("textbackslash", "textasciitilde", "textasciicircum", "textbar", "textless", "textgreater"),
    *("textsuperscript", "eta", "resizebox", "ifdim", "width", "linewidth", "else", "fi"),
    *("raggedright", "arraybackslash"),
}


def test_latex_has_a_row_for_each_row_in_the_rules_of_booktabs_and_hostile_text_as_text():
    text = latex_table(PRINTED, "tab:a b}")
    assert "\\label{tab:a-b-}" in text
    assert set(re.findall(r"\\([A-Za-z]+)", text)) == COMMANDS
    body = text.split("\\midrule\n")[1].split("\n\\bottomrule")[0]
    assert len(body.splitlines()) == 1
    plain = re.sub(r"\\[%&_#${}]", "", text)
    assert plain.count("{") == plain.count("}")
    assert body.startswith("{}[")  # no argument of the row before
    assert len(re.findall(r"(?<!\\)&", body)) == 2
    assert not re.search(r"(?<!\\)[%#_]", plain)
    assert not re.search("[\x1bη³−]", text)
    assert "46 \\% [44, 49]" in body


def test_latex_has_signs_that_every_font_of_pdflatex_has():
    text = escape_latex('p³ 10⁻⁶ x₂ η ε Λ Α ± − – … ≤ × ∂ "q" a\u00a0b a\u200bb a~~b\n c')
    assert text == (
        r"p\textsuperscript{3} 10\textsuperscript{$-$}\textsuperscript{6} x\textsubscript{2} $\eta$ $\epsilon$ "
        r"$\Lambda$ Α $\pm$ $-$ -- \dots{} $\leq$ $\times$ $\partial$ {\char34}q{\char34} a~b ab "
        r"a\textasciitilde{}\textasciitilde{}b c"
    )


def test_a_long_table_of_latex_continues_below_a_caption_of_its_own():
    rows = [[f"row {n}", "1", "2"] for n in range(50)]
    text = latex_table(Table("All", COLUMNS[:3], rows, ["3 seeds."]), "tab:a")
    assert re.findall(r"\\caption{(.*)}", text) == [
        *("All, part 1 of 3. 3 seeds.", "All, part 2 of 3.", "All, part 3 of 3.")
    ]
    assert re.findall(r"\\label{(.*)}", text) == ["tab:a", "tab:a-2", "tab:a-3"]
    assert re.findall(r"^row (\d+) &", text, re.MULTILINE) == [str(n) for n in range(50)]


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex (TeX Live)")
def test_pdflatex_takes_hostile_text_and_wide_and_long_tables(tmp_path):
    signs = 'η³ ε ± − ≤ " „ü“ _ % & # ~ ^ \\ { } < >'
    wide = [Cell(f"{HOSTILE} {signs}", "and a detail that is long") for _ in COLUMNS]
    tables = [
        latex_table(PRINTED, "tab:hostile"),
        latex_table(Table(signs, COLUMNS, [wide, signs, *[wide] * 30], [HOSTILE]), "tab:wide"),
    ]
    document = [
        *(r"\documentclass{article}", r"\usepackage{array,booktabs,graphicx}"),
        *(r"\begin{document}", latex_document(tables), r"\end{document}"),
    ]
    (tmp_path / "paper.tex").write_text("\n".join(document), "utf-8")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
    )
    told = done.stdout.decode("utf-8", "replace")
    assert done.returncode == 0, told
    assert "Overfull \\hbox" not in told
    assert (tmp_path / "paper.pdf").stat().st_size > 10_000


def test_markdown_has_hostile_text_as_text_on_one_line():
    title, _, head, marks, row, _, note = markdown_table(PRINTED).splitlines()
    assert marks == "| --- | ---: | ---: |"
    for line in (title, head, row, note):
        assert not re.search(r"(?<!\\)[<>`$\[]", line)
    assert [len(re.findall(r"(?<!\\)\|", line)) for line in (head, row)] == [4, 4]
    assert "46 % \\[44, 49\\]" in row
