"""The tutorial as one program, as a reader runs it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from paths import ROOT
from rich.console import Console

TUTORIAL = ROOT / "docs" / "tutorial.md"
BLOCK = re.compile(r"^```python(?: title=\"(?P<file>[^\"]+)\")?\n(?P<code>.*?)^```$", re.M | re.S)


def blocks() -> Iterator[tuple[str | None, str]]:
    """The file that a block is, if any, and its text, with the lines where the page has them."""
    page = TUTORIAL.read_text("utf-8")
    for found in BLOCK.finditer(page):
        above = page[: found.start("code")].count("\n")
        yield found["file"], "\n" * above + found["code"]


SMALLER = {'"limit": 96': '"limit": 48', '"epochs": 2': '"epochs": 1'}
"""Half the examples and half the training of the suite at the end, which say the same."""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Runs the program up to a file that it writes, or to its end, in an empty folder; returns this and the names."""
    names: dict[str, object] = {"__name__": "__main__"}
    folder, left = tmp_path_factory.mktemp("tutorial"), list(blocks())

    def run(before: str | None = None) -> tuple[Path, dict[str, object]]:
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            patch.syspath_prepend(folder)
            while left and (before is None or left[0][0] != before):
                file, code = left.pop(0)
                for written, smaller in SMALLER.items():
                    code = code.replace(written, smaller)
                if file:
                    Path(file).write_text(code.lstrip("\n"), "utf-8")
                else:
                    exec(compile(code, TUTORIAL, "exec"), names)
        return folder, names

    return run


@pytest.fixture(scope="module")
def recorded(program):
    """The names at the end of the part that records a loop of the reader."""
    return program(before="word_noise.py")[1]


@pytest.fixture(scope="module")
def measured(recorded, program):
    """The folder and the names at the end of the page."""
    return program()


def test_the_suite_of_the_page_is_the_one_that_is_made_smaller():
    assert all(TUTORIAL.read_text("utf-8").count(written) == 1 for written in SMALLER)


def success(found, attack):
    rows = found.frame()
    return rows[(rows["attack"] == attack) & (rows["status"] == "ok")]["success"].iloc[0]


def test_what_the_plain_loop_sends_gives_tokens_and_labels_away(recorded):
    assert success(recorded["found"], "eia-nn") >= 0.99
    assert success(recorded["found"], "logit-gradient") == 1


def test_the_example_of_the_readme_is_what_the_command_prints(recorded):
    readme = (ROOT / "README.md").read_text("utf-8")
    example = readme.split("it prints (shortened):")[1].split("The next lines")[0]
    *rows, answer = filter(None, map(str.strip, example.splitlines()))
    console = Console(width=120, record=True, file=StringIO())
    console.print(*recorded["found"].tables(), sep="\n")
    printed = [" ".join(line.split()) for line in console.export_text().splitlines()]
    assert len(rows) == 3
    for row in rows:
        assert " ".join(row.split()) in printed
    assert answer == recorded["found"].answer()[0]


def test_noise_by_a_hook_hides_tokens_and_not_labels(recorded):
    assert success(recorded["noisy"], "eia-nn") < 0.6
    assert success(recorded["noisy"], "logit-gradient") == 1


def test_the_defense_of_the_page_is_short_and_more_noise_hides_more(measured):
    folder, names = measured
    assert len((folder / "word_noise.py").read_text("utf-8").splitlines()) < 60
    rows = names["r"].best()
    rows = rows[rows["goal"] == "inversion"]
    open_, _, hidden = (
        rows[rows["setting"].str.endswith(f"σ = {sigma}")].iloc[0] for sigma in ("0", "0.1", "0.3")
    )
    assert open_["success"] >= 0.99
    assert hidden["success"] < 0.5
    assert hidden["certification"] == "certified"


def test_the_figure_is_drawn_where_the_page_says(measured):
    folder, _ = measured
    assert {file.suffix for file in (folder / "plots").iterdir()} == {
        ".png",
        ".svg",
        ".pdf",
        ".txt",
    }
