"""A finding: a sentence and its evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from leakboard.bench.contracts import notebook_html
from leakboard.leaderboards.tables import Interval, Result

TASKS = {
    "sst2": "SST-2",
    "qnli": "QNLI",
    "mnli": "MNLI",
    "mrpc": "MRPC",
    "wikitext2": "WikiText-2",
    "financial_phrasebank": "Financial PhraseBank",
    "blog_topic": "Blog topics",
    "blog_gender": "Blog authors",
    "synthpai": "SynthPAI",
    "trustpilot": "Trustpilot",
    "dialogues": "Dialogues",
    "replies": "Replies",
}
"""Tasks as their authors write them."""
MODELS = {
    "minilm": "MiniLM",
    "mpnet": "MPNet",
    "gemma": "Gemma 3 270M",
    "smollm2": "SmolLM2 135M",
    "stories260k": "Stories 260K",
    "dialogue-gpt": "Dialogue GPT",
}
"""Models as their authors write them."""
USUAL = ("minilm", "dialogue-gpt", "stories260k")
"""Models that a sentence does not name."""


@dataclass(frozen=True)
class Finding:
    """A sentence and its evidence.

    Attributes:
        rule: name of the rule, see `TITLES`.
        metric: metric of `value`, which is missing if the sentence has no main number.
        n: smallest number of independent units of a seed; 0 if unknown.
        attack: strongest attack; '' for utility and cost.
        settings: settings of the sentence, in words.
        keys: keys of the records.

    Examples:
        >>> import leakboard as lb
        >>> finding = lb.published("sap-sst2").findings()[0]
        >>> finding.rule, finding.metric
        ('headlines', 'leakage')
    """

    rule: str
    sentence: str
    task: str
    model: str
    metric: str
    value: Interval
    seeds: int
    n: int
    attack: str
    settings: tuple[str, ...]
    keys: tuple[str, ...]

    @classmethod
    def of(
        cls, rule: str, sentence: str, metric: str, value: Interval, rows: Sequence[Result]
    ) -> Finding:
        """A finding with the evidence of some rows; numbers are those of the first.

        The sentence gets a capital first letter.
        """
        first = rows[0]
        return cls(
            rule=rule,
            sentence=sentence[0].upper() + sentence[1:],
            task=first.setting.task,
            model=first.setting.model,
            metric=metric,
            value=value,
            seeds=len(first.setting.seeds),
            n=first.n,
            attack="" if metric in ("utility", "cost") else first.attack,
            settings=tuple(dict.fromkeys(row.name for row in rows)),
            keys=tuple(dict.fromkeys(key for row in rows for key in row.setting.keys)),
        )

    def __str__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        about = [self.rule, self.task, self.model, *self.settings, f"{self.seeds} seeds"]
        records = f"records {', '.join(self.keys[:3])}" + (" …" if len(self.keys) > 3 else "")
        return notebook_html(self.sentence, notes=[" · ".join(filter(None, [*about, records]))])

    def plain(self) -> dict[str, object]:
        """The fields as JSON values, with null for missing numbers."""
        ends = [None if end != end else end for end in self.value.ends]
        interval = None if None in ends[1:] else ends[1:]
        return asdict(self) | {"value": ends[0], "interval": interval}


def task_name(task: str) -> str:
    """A task as its authors write it."""
    return TASKS.get(task, task)


def place_name(task: str, model: str) -> str:
    """The task, with the model if it is unusual."""
    return task_name(task) if model in USUAL else f"{task_name(task)} with {model_name(model)}"


def model_name(model: str) -> str:
    """A model as its authors write it."""
    return MODELS.get(model, model)


def listing(words: Iterable[str]) -> str:
    """'a', 'a and b', 'a, b and c'; each once."""
    *first, last = dict.fromkeys(words)
    return f"{', '.join(first)} and {last}" if first else last
