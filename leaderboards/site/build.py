"""Builds the site into a folder, completely or not at all; equal records give equal bytes."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from importlib.resources import as_file, files
from pathlib import Path

from leakboard.bench.contracts import LeakboardError, grouped
from leakboard.bench.submissions import Collection, collect
from leakboard.leaderboards.findings import CONDITIONS, TITLES, findings
from leakboard.leaderboards.site.answers import (
    BUDGETS,
    first_of,
    front_data,
    plot_of,
    questions_of,
    words_to_hide,
)
from leakboard.leaderboards.site.markup import code_path, environment
from leakboard.leaderboards.site.methods import by_goal, method_pages
from leakboard.leaderboards.site.records_data import records_data, script
from leakboard.leaderboards.tables import BUDGET, results_table

LIST = "leakboard-site.json"
"""List of all files of a site; a folder without it is never replaced."""
DOCS = "docs"
HEADLINES = 10
"""Findings at the top of their page, the first of each rule."""
BANNER_HIDDEN = " data-board hidden"
"""Attributes that hide the link to the board on pages of the documentation outside of a site."""


def publish(folders: Sequence[Path], to: Path, docs: Path | None = None) -> int:
    """Builds the site of all records in the folders, replaces an earlier one, and returns the number of pages.

    Args:
        docs: folder of the built documentation, which becomes part of the site.

    Raises:
        LeakboardError: see `collect` and `check_place`; there is no documentation, or the disk cannot be written.
    """
    check_place(to)
    if docs is not None and not (docs / "index.html").is_file():
        raise LeakboardError(
            f"--docs: {docs} holds no index.html; `tox run -e docs` builds the documentation into build/docs"
        )
    collection = collect(folders)
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=to.parent, prefix=f".{to.name}.", ignore_cleanup_errors=True
        ) as folder:
            new = Path(folder)
            pages = write_site(collection, new, docs is not None)
            if docs is not None:
                shutil.copytree(docs, new / DOCS)
                for page in (new / DOCS).rglob("*.html"):
                    page.write_text(page.read_text("utf-8").replace(BANNER_HIDDEN, ""), "utf-8")
            (new / LIST).write_text(json.dumps({"files": sorted(files_in(new))}, indent=0), "utf-8")
            new.chmod(0o755)  # temporary folders are private
            check_place(to)  # again, since another process may have written files
            swap(new, to)
    except OSError as error:
        raise LeakboardError(f"{to}: the site could not be written ({error})") from error
    return pages


def write_site(collection: Collection, folder: Path, has_docs: bool = False) -> int:
    """Writes all pages and files of a site into an empty folder, and counts the pages."""
    table = results_table(collection.records.values())
    questions, templates = questions_of(table), environment()
    methods = method_pages(collection, table, questions)
    templates.globals |= {
        "has_docs": has_docs,
        "data_version": collection.version,
        "n_records": len(collection.records),
        "date": max(one.provenance.created for one in collection.records.values())[:10],
    }

    def write(path: str, text: str) -> None:
        place = folder / path
        place.parent.mkdir(exist_ok=True)
        place.write_text(text, "utf-8")

    def page(path: str, template: str, /, **variables: object) -> None:
        root = "../" * path.count("/")
        write(path, templates.get_template(template).render(root=root, **variables))

    kinds = by_goal(methods)
    defenses = [one for own in kinds["defenses"].values() for one in own if one["main"]]
    first = first_of(questions)
    page(
        "index.html",
        "index.html",
        notes=collection.notes,
        questions=questions,
        first=first,
        plot=plot_of(first) if first else "",
        words=words_to_hide(questions),
        budgets=BUDGETS,
        budget=BUDGET,
        defenses=defenses,
    )
    for one in methods:
        page(one["path"], "method.html", **one)
    page("methods.html", "methods.html", kinds=kinds)
    rules = grouped(findings(table), lambda one: TITLES[one.rule])
    heads = [own[0] for own in rules.values()][:HEADLINES]
    page("findings.html", "findings.html", conditions=CONDITIONS, rules=rules, headlines=heads)
    page("records.html", "records.html")
    with as_file(files("leakboard.leaderboards.site") / "assets") as assets:
        shutil.copytree(assets, folder / "assets")
    texts = {code_path(one["kind"], one["name"]): one["code"] for one in methods if one["code"]}
    texts["data/front.js"] = script("leakboardFront", front_data(questions))
    texts["data/records.js"] = script("leakboardRecords", records_data(collection))
    texts["data/results.csv"] = table.frame().to_csv(index=False)
    for path, text in texts.items():
        write(path, text)
    return 4 + len(methods)


def files_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def check_place(to: Path) -> None:
    """Checks that a site may replace this folder.

    Raises:
        LeakboardError: the folder is no built site, or has other files.
    """
    if to.is_symlink() or (to.exists() and not to.is_dir()):
        raise LeakboardError(f"{to}: is not a folder; choose another folder with --to")
    if not to.exists() or not any(to.iterdir()):
        return
    try:
        ours = {*json.loads((to / LIST).read_text("utf-8"))["files"], LIST}
    except (OSError, ValueError, KeyError, TypeError):
        raise LeakboardError(
            f"{to}: contains files but is not a site built by leakboard; choose another folder with --to"
        ) from None
    if others := sorted(files_in(to) - ours):
        raise LeakboardError(
            f"{to}: contains {others[0]}, which leakboard did not write; move it, or choose another folder with --to"
        )


def swap(new: Path, to: Path) -> None:
    """Replaces the old folder by the new one, and restores the old one if that fails."""
    if not to.exists():
        new.rename(to)
        return
    old = new.with_name(new.name + ".old")
    to.rename(old)
    try:
        new.rename(to)
    except OSError:
        old.rename(to)
        raise
    shutil.rmtree(old, ignore_errors=True)
