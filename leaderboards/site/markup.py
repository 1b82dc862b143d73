"""The environment of the templates, and names of pages."""

from __future__ import annotations

import hashlib
import re

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from leakboard.bench import __version__

SAFE = re.compile(r"[a-z0-9][a-z0-9_-]{0,60}")


def environment(package: str = "leakboard.leaderboards.site") -> Environment:
    """The templates of a package; all text in them is escaped, and a missing variable is an error."""
    made = Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"version": __version__}
    made.filters["prose"] = prose
    return made


def prose(text: str) -> Markup:
    """Text of a docstring: words between backticks become code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def slug(name: str) -> str:
    """The file name of a method's page: its name where that is harmless, else digits of its hash."""
    if SAFE.fullmatch(name):
        return name
    return f"x-{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def page_of(kind: str, name: str, root: str = "") -> str:
    """The address of the page of a defense or an attack, from a page from which `root` leads to the front."""
    return f"{root}{kind}s/{slug(name)}.html"
