"""Tables in LaTeX, with the rules of booktabs, no wider than the line and no longer than a page."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from leakboard.leaderboards.rendering.table import Cell, Table

PACKAGES = "% Needs \\usepackage{array,booktabs,graphicx}."
LETTERS = "% Accents may need \\usepackage[T1]{fontenc}; letters of other scripts need LuaLaTeX."
"""Said where a table has letters that are not ASCII."""
LONGEST = 28
"""Characters of a cell; a column with longer ones breaks its lines."""
BROKEN = r">{\raggedright\arraybackslash}p{11em}"
ROWS = 24
"""Rows of a table that fits on a page; a longer one continues in the next."""
FITTED = r"\resizebox{\ifdim\width>\linewidth \linewidth\else\width\fi}{!}{"
ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"{\char34}",
    **{each: f"\\{each}" for each in "%&_#$"},
}
"""Characters that LaTeX would read as commands."""
SYMBOLS = {
    "−": "$-$",
    "–": "--",
    "—": "---",
    "…": r"\dots{}",
    "·": r"$\cdot$",
    "„": ",,",
    "→": r"$\rightarrow$",
    "←": r"$\leftarrow$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "≈": r"$\approx$",
    "≠": r"$\neq$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "∂": r"$\partial$",
    "∞": r"$\infty$",
    "\u00a0": "~",
}
"""Characters that pdfLaTeX does not know in text."""
SPACE = re.compile(r"[^\S\u00a0]+")
GREEK = frozenset("αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΠΣΥΦΨΩ")
"""Letters with commands; other capitals look like Latin ones."""


def latex_table(table: Table, label: str = "") -> str:
    """Floating tables for `array`, `booktabs` and `graphicx`; the notes of the table are part of the caption.

    A table of more than `ROWS` rows continues in further ones. A table that is wider than the line is made smaller.

    Args:
        label: label for `\\ref`; other characters than letters, digits, colons and hyphens become hyphens.
    """
    label = re.sub(r"[^A-Za-z0-9:-]+", "-", label)
    parts = [table.rows[start : start + ROWS] for start in range(0, len(table.rows), ROWS)] or [()]
    made = []
    for n, rows in enumerate(parts, start=1):
        title = table.title if len(parts) == 1 else f"{table.title}, part {n} of {len(parts)}"
        caption = " ".join([f"{title}.", *(table.notes if n == 1 else ())])
        made.append(_float(table, rows, caption, f"{label}-{n}" if label and n > 1 else label))
    return "\n".join(made)


def latex_document(tables: Sequence[str]) -> str:
    """Tables below each other, after remarks on the packages that they need."""
    letters = [] if all(map(str.isascii, tables)) else [LETTERS]
    return "\n".join([PACKAGES, *letters, *tables])


def _float(
    table: Table, rows: Sequence[Sequence[Cell | str] | str], caption: str, label: str
) -> str:
    texts = [
        row if isinstance(row, str) else [cell.words for cell in table.cells(row)] for row in rows
    ]
    kinds = []
    for n, column in enumerate(table.columns):
        longest = max((len(row[n]) for row in texts if not isinstance(row, str)), default=0)
        plain = "r" if column.align == "right" else "l"
        kinds.append(BROKEN if longest > LONGEST and plain == "l" else plain)
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(caption)}}}",
        *([rf"\label{{{label}}}"] if label else []),
        rf"{FITTED}\begin{{tabular}}{{{''.join(kinds)}}}",
        r"\toprule",
        _row([column.label for column in table.columns]),
        r"\midrule",
    ]
    for row in texts:
        if isinstance(row, str):
            lines += [rf"\multicolumn{{{len(kinds)}}}{{l}}{{\textit{{{escape_latex(row)}}}}} \\"]
        else:
            lines.append(_row(row))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}}", r"\end{table}"]) + "\n"


def escape_latex(text: str) -> str:
    """The text for LaTeX: commands and line breaks lose their meaning, and unprintable characters are left out."""
    return "".join(map(_escaped, SPACE.sub(" ", text).strip()))


def _escaped(each: str) -> str:
    if each in ESCAPES or each in SYMBOLS:
        return ESCAPES.get(each) or SYMBOLS[each]
    kind, _, digit = unicodedata.decomposition(each).partition(" ")
    if kind in ("<super>", "<sub>"):
        return rf"\text{kind[1:-1]}script{{{escape_latex(chr(int(digit, 16)))}}}"
    if each in GREEK:
        name = unicodedata.name(each).rpartition(" ")[2].lower().replace("lamda", "lambda")
        return rf"$\{name.capitalize() if each.isupper() else name}$"
    return each if each.isprintable() else ""


def _row(texts: Sequence[str]) -> str:
    # After \\ of the row before, an opening bracket or a star would be an argument.
    guard = "{}" if texts[0].lstrip()[:1] in ("[", "*") else ""
    return f"{guard}{' & '.join(map(escape_latex, texts))} \\\\"
