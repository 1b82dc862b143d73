"""Tables in LaTeX, with the rules of booktabs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from leakboard.leaderboards.rendering.table import Table

ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    **{each: f"\\{each}" for each in "%&_#$"},
}
"""Characters that LaTeX would read as commands."""
SYMBOLS = {
    "−": "$-$",
    "–": "--",
    "…": r"\dots{}",
    "·": r"$\cdot$",
    "³": r"\textsuperscript{3}",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "→": r"$\rightarrow$",
    "←": r"$\leftarrow$",
    **{
        sign: rf"$\{name}$"
        for sign, name in zip(
            "ηεδσμαλγρκ",
            ["eta", "epsilon", "delta", "sigma", "mu", "alpha", "lambda", "gamma", "rho", "kappa"],
            strict=True,
        )
    },
}
"""Characters that pdfLaTeX does not know in text."""


def latex_table(table: Table, label: str = "") -> str:
    """A floating table for `\\usepackage{booktabs}`; the notes of the table are part of its caption.

    Args:
        label: label for `\\ref`; other characters than letters, digits, colons and hyphens become hyphens.
    """
    columns = "".join("r" if column.align == "right" else "l" for column in table.columns)
    caption = " ".join([f"{table.title}.", *table.notes])
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(caption)}}}",
        *([rf"\label{{{re.sub(r'[^A-Za-z0-9:-]+', '-', label)}}}"] if label else []),
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _row([column.label for column in table.columns]),
        r"\midrule",
    ]
    for row in table.rows:
        if isinstance(row, str):
            lines += [rf"\multicolumn{{{len(columns)}}}{{l}}{{\textit{{{escape_latex(row)}}}}} \\"]
        else:
            lines.append(_row([cell.words for cell in table.cells(row)]))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]) + "\n"


def escape_latex(text: str) -> str:
    """The text for LaTeX: commands and line breaks lose their meaning, and unprintable characters are left out."""
    plain = "".join(each for each in " ".join(text.split()) if each.isprintable())
    return "".join(ESCAPES.get(each) or SYMBOLS.get(each) or each for each in plain)


def _row(texts: Sequence[str]) -> str:
    # After \\ of the row before, an opening bracket or a star would be an argument.
    guard = "{}" if texts[0].lstrip()[:1] in ("[", "*") else ""
    return f"{guard}{' & '.join(map(escape_latex, texts))} \\\\"
