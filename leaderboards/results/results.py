"""Results: a collection of records with tables, findings and figures, and the data frame of its results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self, TypedDict, Unpack, get_args, overload

import pandas as pd

from leakboard.bench.contracts import LeakboardError, did_you_mean, notebook_html, teaches
from leakboard.bench.records import WRITERS, DataVersion, export, replacing
from leakboard.leaderboards.tables import (
    STRONGEST,
    Interval,
    RecordSet,
    display_name,
    format_goal,
    format_interval,
    format_percent_interval,
    goal_of,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from leakboard.leaderboards.findings import Finding


MOST_SHOWN, MOST_NOTES = 2000, 3
"""Largest number of records whose results a notebook shows, and of sentences below them."""
PaperForm = Literal["latex", "markdown"]
NEEDED = {"task", "model", "cut", "defense", "setting", "goal", "attribute", "attack"}
NEEDED |= {
    f"{name}{end}" for name in ("leakage", "cost", "success") for end in ("", "_low", "_high")
}
"""Columns of the printed table."""
Width = float | Literal["column", "text"]
PAPER_SUFFIXES: dict[str, PaperForm] = {".tex": "latex", ".md": "markdown"}


class PlotOptions(TypedDict, total=False):
    """Options of figures that `Results.plot` explains."""

    goal: str | None
    attack: str
    against: str | None
    width: Width
    title: str
    formats: str | Sequence[str]
    style: str | None


class Best(pd.DataFrame):
    """One row for each setting and goal; it prints a selection of its columns.

    `results/README.md` explains the columns.

    Examples:
        >>> import leakboard as lb
        >>> best = lb.published("sap-sst2").best()
        >>> sorted(best["defense"].unique())
        ['none', 'sap', 'sap-cti']
    """

    @property
    def _constructor(self) -> type[Best]:
        return Best

    def __repr__(self) -> str:
        # A selection of columns prints as an ordinary frame.
        if not set(self.columns) >= NEEDED:
            return super().__repr__()
        rows = [
            {
                "task": row["task"],
                "model": row["model"],
                "cut": row["cut"],
                "defense": display_name(row["defense"]),
                "setting": "" if row["setting"] == row["defense"] else row["setting"],
                "goal": format_goal(goal_of(row["goal"]), row["attribute"]),
                "leakage": format_percent_interval(Interval.of_row(row, "leakage")),
                "points lost": format_interval(Interval.of_row(row, "cost"), 1),
                "success": format_interval(Interval.of_row(row, "success")),
                "attack": row["attack"],
            }
            for row in pd.DataFrame(self).to_dict("records")
        ]
        return pd.DataFrame(rows).to_string(index=False)

    def _repr_html_(self) -> str:
        if not set(self.columns) >= NEEDED:
            return str(pd.DataFrame(self).to_html())
        return f"<pre>{escape(repr(self))}</pre>"


@dataclass(frozen=True, repr=False, eq=False)
class Results(RecordSet):
    """Records of one or several runs. `len()` and iteration are over the records, and `+` joins two collections.

    See `RecordSet` for the attributes `records`, `name`, `suite`, `folders`, `problems` and `table`.

    Attributes:
        version: data version of published records; None for others.

    Examples:
        >>> import leakboard as lb
        >>> r = lb.load("runs/mine") + lb.published("inversion")
        >>> r.name, len(r) == len(r.records)
        ('mine + inversion', True)
    """

    version: DataVersion | None = None

    def __repr__(self) -> str:
        cells = [record.cell for record in self.records if record.cell.shadow is None]
        bad = Counter(record.status for record in self.records if record.status != "ok")
        words = [f"{len(self)} record{'s' * (len(self) != 1)}"]
        for what, names in (
            ("task", {cell.task for cell in cells}),
            ("model", {cell.model for cell in cells}),
            ("defense", {cell.defense.name for cell in cells}),
        ):
            words += [f"{what}{'s' * (len(names) > 1)} {', '.join(sorted(names))}"] if names else []
        seeds = {cell.seed for cell in cells}
        words += [f"seeds {', '.join(map(str, sorted(seeds)))}"] if seeds else []
        words += [f"{n} {status}" for status, n in sorted(bad.items())]
        words += [f"{len(self.problems)} problems"] if self.problems else []
        words += [str(self.version)] if self.version else []
        return f"<Results {self.name}: {'; '.join(words)}>"

    def _repr_html_(self) -> str:
        from leakboard.leaderboards.terminal import digest_parts

        about = repr(self).strip("<>")
        if len(self) > MOST_SHOWN:
            return notebook_html(about, notes=["`best()` has a row for each setting and goal."])
        head, rows, notes = list[str](), list[list[str]](), list[str]()
        for part in digest_parts(self.table, self.frame()):
            if isinstance(part, str):
                notes.append(part)
                continue
            head = [column.label for column in part.columns]
            for row in part.rows:
                cells = [row] if isinstance(row, str) else [each.text for each in part.cells(row)]
                rows.append([*cells, *[""] * (len(head) - len(cells))])
        return notebook_html(about, head, rows, notes[:MOST_NOTES])

    def best(self) -> Best:
        """One row for each setting and goal: leakage, cost, and the strongest attack.

        `results/README.md` explains the columns.

        Examples:
            >>> import leakboard as lb
            >>> r = lb.published("sap-sst2")
            >>> "leakage" in r.best().columns
            True
        """
        return Best(self.table.frame())

    def findings(self, rule: str | None = None) -> list[Finding]:
        """Conclusions from the records, as sentences with numbers and the keys of their records.

        Args:
            rule: restricts the result to one rule, such as headlines.

        Raises:
            LeakboardError: no such rule.

        Examples:
            >>> import leakboard as lb
            >>> r = lb.published("sap-sst2")
            >>> r.findings("headlines")[0].metric
            'leakage'
        """
        from leakboard.leaderboards.findings import chosen, findings

        words = [] if rule is None else [rule]
        chosen([], words)  # raises for an unknown rule, before all findings are computed
        return chosen(findings(self.table), words)

    @teaches(format="form")
    def export(
        self, path: str | Path, form: PaperForm | None = None, goal: str | None = None
    ) -> Path:
        """Writes `frame()` as .csv, .parquet or .json, or tables for papers as .tex or .md; returns the path.

        Tables for papers have a row for each setting with its leakage, cost and utility, and their intervals.

        Args:
            form: latex or markdown, if the suffix does not say so.
            goal: of tables for papers, only this goal.

        Raises:
            LeakboardError: another suffix, or an unknown form or goal.

        Examples:
            >>> import leakboard as lb
            >>> r = lb.published("sap-sst2")
            >>> r.export("paper.tex", goal="inputs").name
            'paper.tex'
        """
        path = Path(path)
        named = PAPER_SUFFIXES.get(path.suffix)
        if form and named != form and path.suffix in (*PAPER_SUFFIXES, *WRITERS):
            raise LeakboardError(
                f"{path}: {path.suffix} is another format than {form}; leave one out"
            )
        form = form or named
        if form is None:
            if goal is not None:
                raise LeakboardError(
                    f"goal: only for tables for papers; {path} has a column 'goal'"
                )
            export(self._table, path)
            return path
        text = self.paper_tables(form, goal)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write_text(text, "utf-8")
        return path

    def paper_tables(self, form: PaperForm = "latex", goal: str | None = None) -> str:
        """Tables for papers: `latex`, for booktabs, or `markdown`.

        Raises:
            LeakboardError: an unknown form or goal, or nothing was read.

        Examples:
            >>> import leakboard as lb
            >>> r = lb.published("sap-sst2")
            >>> print(r.paper_tables("markdown", goal="inputs"))
            **Leakage of inputs on SST-2...| defense | setting | leakage |...
        """
        from leakboard.leaderboards.results.paper_export import paper_text

        if form not in get_args(PaperForm):
            raise LeakboardError(
                f"form: unknown '{form}'. {did_you_mean(form, get_args(PaperForm))}"
            )
        return paper_text(self.table, form, None if goal is None else goal_of(goal))

    @overload
    def plot(
        self,
        kind: str = ...,
        *,
        out: None = None,
        ax: Axes | None = None,
        **options: Unpack[PlotOptions],
    ) -> Axes: ...

    @overload
    def plot(
        self, kind: str = ..., *, out: str | Path, **options: Unpack[PlotOptions]
    ) -> list[Path]: ...

    @teaches(to="out", format="formats")
    def plot(
        self,
        kind: str = "tradeoff",
        *,
        out: str | Path | None = None,
        goal: str | None = None,
        attack: str = STRONGEST,
        against: str | None = None,
        width: Width = "text",
        ax: Axes | None = None,
        title: str = "",
        formats: str | Sequence[str] = (),
        style: str | None = None,
    ) -> Axes | list[Path]:
        """Draws a figure, and returns its axes; with `out` writes it as files, and returns these.

        The caption with the conditions is in a .txt file next to the pictures.

        Args:
            kind: tradeoff (leakage against cost), goals (leakage of each defense for all goals), printed (with the
                numbers of the paper that the suite mirrors), memory (exposure of canaries), or for label privacy
                training, sensitivity, bars, pca.
            out: folder of the files; without it, pyplot draws the figure, as notebooks show it.
            goal: inputs, identity, labels, attributes, secrets, members or model; by default the first attacked one.
                For tradeoff and printed.
            attack: strongest, paper, or the name of an attack.
            against: parameter on the x axis, such as cut, instead of the cost; for tradeoff.
            width: width of the figure in inches, or of a column (3.3) or the text (7) of most papers.
            ax: axes of matplotlib to draw on, in your own style; the figure must have one panel.
            title: title above the figure, which has none by default.
            formats: png, svg, pdf, or several; by default all.
            style: style of matplotlib: a name that it knows, or a file.

        Returns:
            The first axes, whose `figure` has the others and `savefig`; with `out` the files.

        Raises:
            LeakboardError: an unknown argument, or nothing to draw.

        Examples:
            >>> import leakboard as lb
            >>> r = lb.published("sap-sst2")
            >>> r.plot("tradeoff", out="plots", width="column", formats="pdf")[0].suffix
            '.pdf'
        """
        from leakboard.leaderboards.figures import Request, draw, draw_axes

        request = Request(kind, goal, attack, against, width, title, formats, style)
        if out is None:
            return draw_axes(self, request, ax)
        if ax is not None:
            raise LeakboardError(
                "ax: leave out `out`; save the figure of your axes with its own `savefig`"
            )
        return draw(self, Path(out), request)

    def named(self, name: str) -> Self:
        """The same records with another name, for titles and files of figures.

        Examples:
            >>> import leakboard as lb
            >>> lb.published("sap-sst2").named("SAP").name
            'SAP'
        """
        return replace(self, name=name)
