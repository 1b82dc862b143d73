"""Blocks of Python in README and docs, run page by page as one program, with what the reader brings.

The tutorial has a test of its own. A page whose program a machine without network or GPU cannot run would
stand in `NOT_RUN` with the reason.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest
import torch
import transformers
from audited_models import base_model, memorise, sample_texts
from model_folders import tiny_folder
from paths import ROOT
from quick_suite import SUITE

import leakboard as lb

# Said by transformers, peft and torch of themselves, whatever a reader does.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning"),
    pytest.mark.filterwarnings("ignore:'pin_memory':UserWarning"),
]

NOT_RUN: dict[str, str] = {}
"""Reasons why the program of a page is not run, by page."""
BLOCK = re.compile(r"^ *```python.*?\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
TEXTS = [
    f"The {word} was noisy, and so was the {n}th film." for n in range(8) for word in ("a", "b")
]
LABELS = [0, 1] * 8

Names = dict[str, Any]
Given = Callable[[Path], Names]


@cache
def program(page: str) -> str:
    """The blocks of a page, each on the lines where the page has it."""
    text, code = (ROOT / page).read_text("utf-8"), ""
    for found in BLOCK.finditer(text):
        above = text[: found.start(1)].count("\n")
        code += "\n" * (above - code.count("\n")) + found[1]
    return code


def recorded_loop(folder: Path) -> Names:
    """A tiny classifier, its tokeniser and texts, a loop and an object with such a loop, and the truth as a file."""
    base = tiny_folder(folder / "tiny")
    tokenizer = transformers.AutoTokenizer.from_pretrained(base)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(base)

    def train(model: Any, encoded: Any, labels: list[int]) -> None:
        model.train()
        batch = tokenizer.pad(encoded, return_tensors="pt")
        model(**batch, labels=torch.tensor(labels)).loss.backward()

    class Trainer:
        def train(self) -> None:
            train(model, tokenizer(TEXTS), LABELS)

    with (folder / "train.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *zip(TEXTS, LABELS, strict=True)])
    return {
        "model": model,
        "tokenizer": tokenizer,
        "texts": TEXTS,
        "labels": LABELS,
        "train": train,
        "trainer": Trainer(),
    }


def sent_vectors(folder: Path) -> Names:
    """Also rows, vectors and lengths of two epochs."""
    lengths = torch.tensor([3, 5])
    return recorded_loop(folder) | {
        "recorded": [(torch.arange(2), torch.randn(8, 32), lengths) for _ in range(2)]
    }


def adapter(folder: Path) -> Names:
    """A peft model that memorised texts, in memory and as a folder, with lists of texts as files."""
    from datasets import Dataset
    from peft import LoraConfig, get_peft_model

    model, tokenizer = base_model()
    for part in (model, tokenizer):
        part.save_pretrained(folder / "tiny")
    torch.manual_seed(0)
    model = get_peft_model(model, LoraConfig(target_modules=["c_attn"], fan_in_fan_out=True))
    members, others, public = (lines[:12] for lines in sample_texts())
    batch = tokenizer(members, padding=True, return_tensors="pt")
    labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
    memorise(model, batch, labels, rate=1e-2, steps=10)
    model.save_pretrained(folder / "adapter")
    for name, lines in {"members": members, "others": others, "public": public}.items():
        with (folder / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["text"], *([line] for line in lines)])
    return {
        "model": model,
        "tokenizer": tokenizer,
        "texts": members,
        "held_out": others,
        "dataset": Dataset.from_dict({"text": members}),
    }


def language_model(folder: Path) -> Names:
    tiny_folder(folder / "tiny", "tiny-gpt2")
    return {}


def nothing(folder: Path) -> Names:
    return {}


SMALL = {'"minilm"': '"tiny"', '"dialogue-gpt"': '"tiny"', '"smoke"': '"quick.yaml"'}
"""Tiny models and a quick suite in place of those that a page names."""
PAGES: dict[str, tuple[Given, dict[str, str]]] = {
    "README.md": (recorded_loop, SMALL),
    "results/README.md": (sent_vectors, SMALL),
    "docs/index.md": (recorded_loop, SMALL),
    "docs/quickstart.md": (nothing, {}),
    "docs/loops.md": (language_model, SMALL),
    "docs/audit.md": (adapter, SMALL),
}
"""What the reader of a page brings, and what is replaced in its program."""


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """The folder in which the program of a page was run, the names that it left, and what it printed; once per page."""

    @cache
    def run(page: str) -> tuple[Path, Names, str]:
        given, replaced = PAGES[page]
        folder, code = tmp_path_factory.mktemp("page"), program(page)
        (folder / "quick.yaml").write_text(SUITE, "utf-8")
        for old, new in replaced.items():
            code = code.replace(old, new)
        printed: list[str] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            # Another test may have registered a device that cannot pin memory.
            patch.setattr(torch.accelerator, "is_available", lambda: False)
            names = given(folder) | {
                "__name__": "__main__",
                "print": lambda *values, sep=" ": printed.append(sep.join(map(str, values))),
            }
            exec(compile(code, page, "exec"), names)
        plt.close("all")
        return folder, names, "\n".join(printed)

    return run


def test_every_page_with_python_is_run_or_its_reason_is_named():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "results").glob("*.md")]
    pages += (ROOT / "docs").rglob("*.md")
    named = {p.relative_to(ROOT).as_posix() for p in pages if BLOCK.search(p.read_text("utf-8"))}
    assert named - {"docs/tutorial.md"} == PAGES.keys() | NOT_RUN.keys()
    assert not PAGES.keys() & NOT_RUN.keys()


@pytest.mark.parametrize("page", ["README.md", "results/README.md", "docs/index.md"])
def test_a_recording_around_a_training_gives_its_texts_away(ran, page):
    folder, _, _ = ran(page)
    assert (folder / "wire" / "manifest.json").exists()
    found = lb.attack(
        folder / "wire",
        model=folder / "tiny",
        truth=folder / "train.csv",
        attacks=["eia-nn"],
        progress=False,
    )
    assert found.best()["success"].iloc[0] > 0.99


def test_arrays_of_the_reader_become_a_transcript(ran):
    folder, names, _ = ran("results/README.md")
    assert {leak.attack.name for leak in names["found"].leaks} >= {"eia-nn", "logit-gradient"}
    from leakboard.bench.backbones import load_backbone
    from leakboard.bench.exchange import read_transcript

    _, read = read_transcript(folder / "sent", load_backbone(str(folder / "tiny")))
    assert [message.round for message in read.messages] == [0, 1]


@pytest.mark.parametrize("page", ["docs/index.md", "docs/quickstart.md"])
def test_published_records_are_shown_with_a_choice_within_the_budget(ran, page):
    _, names, printed = ran(page)
    assert "SAP" in printed
    assert "eia-" in printed
    assert len(names["r"].best()) > 0


def test_the_suite_of_the_first_page_is_run_and_drawn(ran):
    folder, names, _ = ran("docs/index.md")
    assert names["r"].best()["defense"].nunique() == 3
    assert {".png", ".svg", ".pdf"} <= {file.suffix for file in (folder / "plots").iterdir()}


def test_the_trainer_of_a_language_model_ends_with_the_sentences_of_its_page(ran):
    _, _, printed = ran("docs/loops.md")
    page = (ROOT / "docs" / "loops.md").read_text("utf-8")
    block = page.split("It prints:")[1].split("The provider knows")[0]
    assert "recovers 100 % of the tokens" in printed
    # Chance depends on the tokeniser of the model.
    told, shown = (re.sub(r"guessing: \d+ %", "", text) for text in (block, printed))
    assert shown.splitlines() == [line.strip() for line in told.splitlines() if line.strip()]


def test_an_audit_and_canaries_end_with_their_reports(ran):
    folder, names, printed = ran("docs/audit.md")
    assert names["found"].leaks
    assert printed.count("\n") >= 2
    for name in ("audit.html", "canaries.html"):
        assert "<h1" in (folder / name).read_text("utf-8")
