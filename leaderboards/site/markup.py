"""The environment of the templates, and addresses of pages and rows."""

from __future__ import annotations

import hashlib
import re

from jinja2 import Environment
from markupsafe import Markup, escape

from leakboard.bench import __version__
from leakboard.bench.contracts import Goal
from leakboard.leaderboards.findings import model_name, task_name
from leakboard.leaderboards.rendering import templates
from leakboard.leaderboards.tables import (
    PLAIN_WORDS,
    Result,
    cost_words,
    count,
    format_interval,
    format_number,
    format_percent,
    format_percent_interval,
    nearest_printed,
)

SAFE = re.compile(r"[a-z0-9][a-z0-9_-]{0,60}")


def environment(package: str = "leakboard.leaderboards.site") -> Environment:
    """The templates of a package, with the formats and addresses of pages."""
    made = templates(package)
    made.globals |= {
        "version": __version__,
        "code_path": code_path,
        "page_of": page_of,
        "word_of": word_of,
        "anchor": anchor,
        "address_of": address_of,
        "nearest_printed": nearest_printed,
    }
    made.filters |= {
        "prose": prose,
        "word": PLAIN_WORDS.__getitem__,
        "task": task_name,
        "model": model_name,
        "cost_words": cost_words,
        "counted": count,
        "number": format_number,
        "interval": format_interval,
        "percent": format_percent,
        "percent_interval": format_percent_interval,
    }
    return made


def prose(text: str) -> Markup:
    """Text of a docstring: words between backticks become code, and numbers keep their names and units."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(unbroken(text)))))


def unbroken(text: str) -> str:
    """Text whose lines do not break between a number and its name or unit."""
    return re.sub(r" (?==|%|points)|(?<==) ", "\u00a0", text)


def word_of(goal: Goal, attribute: str = "") -> str:
    """A goal as pages name it, such as 'texts' or 'authors (age group)'."""
    return PLAIN_WORDS[goal] + (f" ({attribute.replace('_', ' ')})" if attribute else "")


def slug(name: str) -> str:
    """The file name of a method's page: its name where that is harmless, else digits of its hash."""
    return name if SAFE.fullmatch(name) else f"x-{_digits(name)}"


def page_of(kind: str, name: str, root: str = "") -> str:
    """The address of the page of a defense or an attack, from a page from which `root` leads to the front."""
    return f"{root}{kind}s/{slug(name)}.html"


def code_path(kind: str, name: str) -> str:
    """The address of the source of a method, from the front."""
    return f"code/{kind}-{slug(name)}.txt"


def anchor(one: Result) -> str:
    """The id of a result's row."""
    return f"r{_digits(f'{one.goal} {one.attribute} {one.setting.keys[0]}')}"


def address_of(one: Result, root: str = "") -> str:
    """The address of a result's row on the page of its defense."""
    return f"{page_of('defense', one.defense, root)}#{anchor(one)}"


def _digits(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
