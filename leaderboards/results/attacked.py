"""Results of attacks on a transcript, or on a trained model, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from leakboard.bench.contracts import Goal, Leak, LeakboardError, grouped, notebook_html
from leakboard.bench.external import Audit
from leakboard.bench.records import leaks_frame
from leakboard.bench.scoring import advantage_low
from leakboard.leaderboards.results.sources import published
from leakboard.leaderboards.tables import BUDGET, GOAL_WORDS
from leakboard.leaderboards.terminal import HELPS, READ, SURE, attacked_parts, helps, printable

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import RenderableType

HOMES = {
    Goal.INVERSION: ("matrix", "sst2"),
    Goal.LABEL: ("matrix", "sst2"),
    Goal.ATTRIBUTE: ("attributes", "blog_gender"),
    Goal.MEMORISATION: ("exposure", "dialogues"),
    Goal.MEMBERSHIP: ("dp-audit", "dialogues"),
}
"""Published suite and task in which attacks on a goal are shown to work."""
NEXT = "Next: "


@dataclass(frozen=True, repr=False, eq=False)
class Attacked(Audit):
    """Results of attacks on a transcript or a trained model: scores, or guesses if there is no truth.

    Attributes:
        leaks: score of each attack, or the reason why there is none.
        guesses: attacks with their guesses, if there was no truth to score them.
        cut_short: the error that ended the recording early, or an empty string.
        summary: sentences that explain the scores: what is read, how certain that is, and what to do next.
        strongest: of an audited model the best membership attack, chosen on one half of the texts and measured on the other.
            `attacks` names the choice of each half; `AUC` and both true positive rates are estimates.

    Examples:
        >>> import leakboard as lb
        >>> found = lb.attack("wire/", model="minilm", truth="train.csv")  # doctest: +SKIP
        >>> found.write("found.json")  # doctest: +SKIP
    """

    @classmethod
    def of(cls, audit: Audit) -> Self:
        return cls(**vars(audit))

    def frame(self) -> pd.DataFrame:
        """One row per leak, with the columns of `Results.frame` that are known for it."""
        return leaks_frame(self.leaks)

    def best(self) -> pd.DataFrame:
        """The attack with the largest advantage for each goal, attribute and view, without attacks that only guess.

        `is_clear` is True if the interval of success lies above the baseline. Without an undefended twin, a result that
        is not clear is no evidence of privacy.
        """
        rows = self.frame().dropna(subset=["success"])
        rows = rows[rows["channel"] != ""].sort_values("advantage", ascending=False, kind="stable")
        first = rows.drop_duplicates(["goal", "attribute", "view"]).sort_index()
        columns = ["goal", "attribute", "view", "attack", "channel", "metric"]
        numbers = ["success", "success_low", "success_high", "chance", "is_clear"]
        first = first.assign(is_clear=first["advantage_low"] > 0)
        return first[[*columns, *numbers]].reset_index(drop=True)

    def tables(self, everything: bool = True) -> Iterator[RenderableType]:
        """Parts for a terminal: the strongest attack of each goal, the others, and reasons for missing scores.

        Args:
            everything: False for ten scores, and the number of the others.
        """
        return printable(attacked_parts(self, everything))

    def answer(self, max_cost: float = BUDGET) -> list[str]:
        """Three lines: what is read, what helps within the budget by the published records, and how sure that is.

        There are none without sentences.

        Args:
            max_cost: largest cost of protection in points of utility.
        """
        if not self.summary:
            return []
        first, *others = self.summary
        sure = [one for one in others if not one.startswith(NEXT)]
        steps = [one.removeprefix(NEXT) for one in others if one.startswith(NEXT)]
        steps = steps or ["`leakboard choose` compares defenses."]
        helping = _helping(self.leaks, max_cost) or " ".join(steps)
        return [f"{READ} {first}", f"{HELPS} {helping}", f"{SURE} {' '.join(sure) or first}"]

    def _repr_html_(self) -> str:
        heading, *sentences = self.summary or (f"{len(self.leaks)} leaks",)
        if self.guesses:
            return notebook_html(heading, notes=[*sentences, f"{len(self.guesses)} guesses"])
        best = self.best()
        shown = best.map(lambda value: f"{value:.3g}" if isinstance(value, float) else str(value))
        return notebook_html(heading, list(best.columns), shown.values.tolist(), sentences)

    def __repr__(self) -> str:
        content = (
            f"{len(self.guesses)} guesses" if self.guesses else self.best().to_string(index=False)
        )
        return "\n".join([f"<Attacked: {len(self.leaks)} leaks>", *self.summary, content])


def _helping(leaks: Iterable[Leak], budget: float) -> str:
    """Settings by the published records for each goal that is read, or an empty string."""
    read = {leak.goal for leak in leaks if leak.channel and (advantage_low(leak) or 0) > 0}
    answered = (goal for goal in GOAL_WORDS if goal in read and goal in HOMES)
    homes = grouped(answered, lambda goal: HOMES[goal])
    parts = []
    for (suite, task), goals in homes.items():
        try:
            table = published(suite).table
        except LeakboardError:  # an installation without records
            continue
        found = helps(table, [(goal, task) for goal in goals], budget)
        parts.append(f"{found.removeprefix(HELPS).strip(' .')}, as published on {task}.")
    return " ".join(parts)
