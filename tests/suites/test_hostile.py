"""Suites that nobody wrote by mistake: bounded, refused in words, and nothing of them is followed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from suite_files import HEAD, Read

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.suites.methods import methods_named
from leakboard.bench.suites.suite import load_suite

HOSTILE = {
    "200,000 brackets": (
        HEAD + "seeds: " + "[" * 200_000,
        "my.yaml:1: is nested too deeply to be read",
    ),
    "aliases that mean 100,000 values": (
        HEAD
        + "defenses: none\nseeds:\n - &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n"
        + "".join(
            f" - &{b} [{', '.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcd", "bcde", strict=True)
        ),
        "my.yaml:4: seeds: holds more than 10,000 values, with all that aliases mean",
    ),
    "grid without end": (
        HEAD + "defenses: [sap: {eta: [%s], bottom: [%s]}]\n" % (("1, " * 899,) * 2),
        "my.yaml:3: defenses[0].sap: is a grid of 808,201 settings; the limit is 1,000",
    ),
    "many grids": (
        HEAD
        + "defenses:\n"
        + "".join(f"  - sap: {{eta: {list(range(i, i + 600))}}}\n" for i in (1, 601, 1201)),
        "my.yaml:3: defenses: must be at most 1,000 settings, all grids unfolded",
    ),
    "cells without end": (
        HEAD + f"seeds: {list(range(300))}\ncut: {list(range(300))}\ndefenses: none\n",
        "my.yaml:1: is 90,000 cells; the limit is 5,000. Split the suite",
    ),
    "object of Python": (
        HEAD + "defenses: !!python/object/apply:os.system [ls]\n",
        "my.yaml:3: defenses: the tag tag:yaml.org,2002:python/object/apply:os.system is not "
        "supported; remove it",
    ),
    "object of Python as the whole": (
        "!!python/object:os.x {}\n",
        "my.yaml:1: the tag tag:yaml.org,2002:python/object:os.x is not supported; remove it",
    ),
    "number of 6,000 digits": (
        HEAD + "defenses: none\nseeds: " + "9" * 6000,
        "my.yaml:4: seeds: must be a whole number of at most 18 characters, got '999",
    ),
    "version of 6,000 digits": (
        "%YAML 1." + "9" * 6000 + "\n---\n" + HEAD,
        "my.yaml:1: not valid YAML: Exceeds the limit",
    ),
    "NUL": (
        HEAD + 'defenses: none\ndescription: "a\\0b"\n',
        "my.yaml:4: description: holds the invisible character U+0000",
    ),
    "escape sequence": (
        HEAD + 'defenses: none\nplant: {canaries: "\\e[2J{digits}"}\n',
        "my.yaml:4: plant.canaries: holds the invisible character U+001B",
    ),
    "half a character": (
        HEAD + 'defenses: none\ndescription: "a\\uD800"\n',
        "my.yaml:4: description: holds the invisible character U+D800",
    ),
    "character beyond all": (
        HEAD + 'defenses: none\ndescription: "a\\UFFFFFFFF"\n',
        "my.yaml:1: not valid YAML: Python int too large",
    ),
    "endless text": (
        HEAD + "defenses: none\ndescription: " + "a" * 10_001,
        "my.yaml:4: description: is longer than 10,000 characters",
    ),
    "name that leads out of the folder of records": (
        "name: ../../x\ntask: sst2\ndefenses: none\n",
        r"my.yaml:1: name: must match pattern '^\w[\w .+-]*$', got '../../x'",
    ),
    "name with markup": (
        'name: "[red]x[/blue]"\ntask: sst2\ndefenses: none\n',
        r"my.yaml:1: name: must match pattern '^\w[\w .+-]*$', got '[red]x[/blue]'",
    ),
    "name without end": (
        "name: " + "x" * 5000 + "\ntask: sst2\ndefenses: none\n",
        "my.yaml:1: name: must be shorter, got 'xxx",
    ),
}


def mistakes(read: Read, text: str) -> list[str]:
    with pytest.raises(LeakboardError) as e:
        read(text)
    return str(e.value).splitlines()


@pytest.mark.parametrize(("text", "message"), HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_suite_is_told_in_one_line(read: Read, text: str, message: str) -> None:
    (line,) = mistakes(read, text)
    assert line.startswith(message)
    assert len(line) < 400


def test_of_thousands_of_mistakes_the_first_are_told(read: Read) -> None:
    told = mistakes(read, HEAD + "defenses: none\n" + "".join(f"k{i}: 1\n" for i in range(3000)))
    assert len(told) == 51
    assert told[-1] == "and 2950 more mistakes"


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "my.yaml").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(LeakboardError, match=r"is larger than 256 KiB"):
        load_suite(tmp_path / "my.yaml")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("~nouser/x.yaml", "'~nouser' is not a user of this machine"),
        ("x" * 5000 + ".yaml", "File name too long"),
        ("a\0.yaml", "not a valid path"),
        ("gone.yaml", "is a link to nowhere, which does not exist"),
        ("pipe.yaml", "is not a regular file"),
    ],
)
def test_a_path_that_is_none_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gone.yaml").symlink_to("nowhere")
    os.mkfifo("pipe.yaml")
    with pytest.raises(LeakboardError, match=expected):
        load_suite(name)


@pytest.mark.parametrize(
    "word", ["[" * 200_000, "sap: !!python/object/apply:os.system [ls]", "&a [*a]", '"\\UFFFFFFFF"']
)
def test_a_word_of_a_command_is_read_as_carefully(word: str) -> None:
    with pytest.raises(LeakboardError):
        methods_named("defense", [word])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seeds": 10**6000}, "suite: seeds: must be a whole number of at most 64 bits"),
        ({"seeds": range(20_000)}, "suite: seeds: holds more than 10,000 values"),
        ({"description": "a\0"}, r"suite: description: holds the invisible character U\+0000"),
    ],
)
def test_a_dict_is_bounded_like_a_file(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(LeakboardError, match=message):
        load_suite({"name": "mine", "task": "sst2", "defenses": "none"} | changes)
