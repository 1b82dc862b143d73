"""What pages and instructions name is there: files, modules, commands and their options."""

from __future__ import annotations

import ast
import importlib
import json
import re
import shlex
import subprocess
from pathlib import Path

import click
import pytest
import yaml
from paths import ROOT
from typer.main import get_command

import leakboard
from leakboard.bench import cli
from leakboard.bench.contracts import LeakboardError
from leakboard.bench.suites.suite import load_suite

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "results/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
CODE = re.compile(r"^```.*?^```$|`[^`\n]+`|^ {4}.*$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?<!import )\bleakboard ((?:[a-z]+)\b(?:[^\n`|#]|\\\n)*)")
FILE = re.compile(
    r"`((?:bench|defenses|attacks|leaderboards|leakboard|docs|tests|results)/[\w./-]+)`"
)
MODULE = re.compile(r"`(leakboard\.(?:bench|leaderboards|defenses|attacks)(?:\.\w+)+)")
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")
LATER = re.compile(r"my[-_]|results/local|results/published/")
"""Files that a reader makes."""


def named(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_files_and_modules_that_a_page_names_are_there(page):
    text, missing = page.read_text("utf-8"), []
    for name in FILE.findall(text):
        if not LATER.search(name) and not (ROOT / name).exists():
            missing.append(name)
    for name in MODULE.findall(text):
        module, _, attribute = name.rpartition(".")
        try:
            importlib.import_module(name)
        except ImportError:
            if not hasattr(importlib.import_module(module), attribute):
                missing.append(name)
    assert missing == []


@pytest.mark.parametrize("page", [page for page in PAGES if "docs" in page.parts], ids=named)
def test_links_of_the_documentation_stay_within_it(page):
    """The site of the documentation has no page outside docs."""
    docs = ROOT / "docs"
    targets = [(page.parent / link).resolve() for link in LINK.findall(page.read_text("utf-8"))]
    assert [str(t) for t in targets if docs not in t.parents or not t.exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_commands_and_options_that_a_page_shows_exist(page):
    commands = get_command(cli.app).commands
    code = "\n".join(found[0] for found in CODE.finditer(page.read_text("utf-8")))
    wrong = []
    for line in COMMAND.findall(code):
        verb, *words = line.split()
        known = {o for p in getattr(commands.get(verb), "params", ()) for o in p.opts} | {"--help"}
        used = {word.split("=")[0] for word in words if word.startswith("--")}
        if verb not in commands or not used <= known:
            wrong.append(line)
    assert wrong == []


def lines_of(page):
    """Commands of a page as words: those in blocks, with continued lines joined and without remarks."""
    text = page.read_text("utf-8").replace("\\\n", " ")
    blocks = re.findall(r"^```(?:sh|console|bash)\b.*?\n(.*?)^```$", text, re.M | re.S)
    indented = re.findall(r"^ {4}(leakboard .*)$", text, re.MULTILINE)
    for line in [*indented, *"\n".join(blocks).splitlines()]:
        if line.startswith("leakboard "):
            yield shlex.split(line.split(" && ")[0], comments=True)[1:]


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_a_command_in_a_block_is_one_that_can_be_called(page):
    application = get_command(cli.app)
    for words in lines_of(page):
        group, own = application, [*words]
        while isinstance(group, click.Group):
            assert own[0] in group.commands, words
            group = group.commands[own.pop(0)]
        try:
            group.make_context("leakboard", own)
        except click.exceptions.Exit:
            pass  # --help
        except click.ClickException as error:
            pytest.fail(f"{' '.join(words)}: {error.message}")


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_blocks_of_yaml_and_json_can_be_read(page):
    for kind, block in re.findall(
        r"^```(yaml|json)\b.*?\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S
    ):
        read = yaml.safe_load(block) if kind == "yaml" else json.loads(block)
        assert read
        if kind == "yaml" and isinstance(read, dict) and {"name", "defenses"} <= read.keys():
            try:
                load_suite(read)
            except LeakboardError as error:  # a defense that the reader writes
                if not re.match(r"suite: defenses\[\d\]: unknown defense 'my-", str(error)):
                    raise


def test_environments_of_tox_that_a_page_shows_exist():
    known = re.findall(r"^\[testenv:(\w+)\]", (ROOT / "tox.ini").read_text("utf-8"), re.MULTILINE)
    told = {
        name for page in PAGES for name in re.findall(r"tox run -e (\w+)", page.read_text("utf-8"))
    }
    assert told - {*known} == set()


def test_every_name_of_the_public_api_has_its_place_in_the_documentation():
    pages = "".join(page.read_text("utf-8") for page in (ROOT / "docs" / "api").glob("*.md"))
    told = re.findall(r"^::: leakboard\.(\w+)$", pages, re.MULTILINE)
    assert sorted(told) == sorted({*leakboard.__all__} - {"__version__"})


def test_the_pages_on_python_name_only_what_is_public():
    names = {
        node.attr
        for page in PAGES
        for block in re.findall(r"^```python.*?\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
        for node in ast.walk(ast.parse(block))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "lb"
    }
    assert names - {*leakboard.__all__} == set()


def test_the_scripts_for_a_cluster_are_sound_bash(tmp_path):
    page = (ROOT / "docs" / "machines.md").read_text("utf-8")
    scripts = re.findall(r"^```sh title=\"\w+\.sbatch\"\n(.*?)^```$", page, re.M | re.S)
    assert len(scripts) == 2
    for script in scripts:
        told = subprocess.run(
            ["bash", "-n"], input=script, text=True, capture_output=True, check=False
        )
        assert told.returncode == 0, told.stderr
