"""Texts that say plainly what attacks guess: whoever works at all learns it from a few hundred of them."""

from __future__ import annotations

from pathlib import Path

from leakboard.bench.tasks import OwnTask, Split, load_task

WORDS = {
    "label": ("bad", "good"),
    "gender": ("she", "he"),
    "age_band": ("young", "adult", "old"),
}
KEPT = 5
"""Words of a review: short texts are quick, and what is said plainly is a large part of them."""


def plain_texts(folder: Path) -> OwnTask:
    """Writes `reviews` cut short, each after a word for its label and one for each attribute, into a folder."""
    task = load_task("reviews")
    for name in ("train", "dev"):
        lines = ["\t".join(["text", *WORDS]), *_lines(task.splits[name])]
        (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    return OwnTask(name="plain-reviews", path=folder, attributes=tuple(task.attributes))


def _lines(split: Split) -> list[str]:
    values = {"label": split.labels, **split.attributes}
    told = zip(*([WORDS[name][value] for value in values[name]] for name in WORDS), strict=True)
    return [
        "\t".join([" ".join([*words, *text.split()[:KEPT]]), *words])
        for text, words in zip(split.texts, told, strict=True)
    ]
