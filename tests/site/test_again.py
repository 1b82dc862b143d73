"""A site that is built again: what changed is built, the rest carried over, and nothing tells which."""

from __future__ import annotations

import json
import shutil

import pytest
from leakboard.leaderboards.site.pages import Pages
from leakboard.leaderboards.site.previous import MANIFEST, Previous
from records import leak, record
from site_records import digests, kept, over_time, plain_records

from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.records.store import MANIFEST as SUBMITTED
from leakboard.bench.submissions.packing import Entry, Manifest
from leakboard.leaderboards.site import build, inputs, making, pictures
from leakboard.leaderboards.site.build import publish


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """Two folders of records, of which one cell stands in both, and their site."""
    place = tmp_path_factory.mktemp("first")
    folders = [
        kept(place / name, made)
        for name, made in {"plain": plain_records(), "time": over_time()}.items()
    ]
    an_attack_elsewhere(folders, 0.3)
    publish(folders, place / "site")
    return folders


@pytest.fixture(scope="module")
def in_words(first):
    """The same site with, in the place of figures, all that they could show in words."""
    with pytest.MonkeyPatch.context() as patched:
        drawn_in_words(patched)
        publish(first, first[0].parent / "words")
    return first[0].parent / "words"


def drawn_in_words(monkeypatch):
    def words(out, *told):
        paths = [out.with_name(f"{out.name}.{kind}") for kind in making.KINDS]
        out.parent.mkdir(exist_ok=True)
        for path in paths:
            path.write_text(repr(told))
        return paths

    def panel(one, out):
        rows = one.rows.to_dict("records")
        return words(out, one.task, one.what, one.about, rows)

    def records(own, out, **told):
        return words(out, [one.model_dump_json() for one in own], told)

    def matrices(found, out, **told):
        return words(out, [(one.comparison.words, one.aims, one.lines) for one in found], told)

    monkeypatch.setattr(pictures, "of_panel", panel)
    monkeypatch.setattr(pictures, "memory", records)
    monkeypatch.setattr(pictures, "training", records)
    monkeypatch.setattr(pictures, "goals", matrices)
    monkeypatch.setattr(pictures, "MANY", 2)


@pytest.fixture
def again(first, tmp_path):
    """Copies of the folders and of the site, to be changed."""
    folders = [shutil.copytree(folder, tmp_path / folder.name) for folder in first]
    shutil.copytree(first[0].parent / "site", tmp_path / "site")
    return folders, tmp_path / "site"


@pytest.fixture
def made(monkeypatch):
    """The paths of the pages and of the figures that are made, not carried over."""
    found = []
    page, begin = Pages._page, making.Drawing.begin

    def told(self, template, links, **content):
        found.append(content["record"].key if template == "record.html" else template)
        return page(self, template, links, **content)

    def drawn(self, draw, out):
        found.append(out.name)
        return begin(self, draw, out)

    monkeypatch.setattr(Pages, "_page", told)
    monkeypatch.setattr(making.Drawing, "begin", drawn)
    return found


def from_nothing(folders, tmp_path):
    publish(folders, tmp_path / "nothing")
    return digests(tmp_path / "nothing")


def one_more(folders):
    kept(folders[0], [record("dc", {"weight": 0.5}, 0, 0.85, [leak(0.6)])])


def one_less(folders):
    one = next(one for one in plain_records() if one.cell.defense.params == {"eta": 25.0})
    (folders[0] / f"{one.key}.json").unlink()


def another_number(folders):
    one = plain_records()[1]
    kept(folders[0], [one.model_copy(update={"utility": one.utility.model_copy(update={"n": 3})})])


def another_certificate(folders):
    """Of an attack on a twin: it counts for records whose files stay as they are."""
    for one in plain_records():
        if one.cell.defense.params == {"eta": None}:
            first, *rest = one.leaks
            weaker = leak(0.5, first.attack.name)
            kept(folders[0], [one.model_copy(update={"leaks": [weaker, *rest]})])


def an_attack_elsewhere(folders, success=0.4):
    """A cell of the first folder in the second one, with another attack."""
    one = plain_records()[0]
    kept(folders[1], [one.model_copy(update={"leaks": [leak(success, "eia-map")]})])


def another_parameter(folders):
    """It varies now, and so is told of the records that were there."""
    kept(folders[0], [record("p3eft", {"weight": 0.2}, 0, 0.5, [leak(0.1)])])


def another_rate(folders):
    """What words do not tell apart is told by digits, of what was there as well."""
    one = record("dc", {"weight": 0.5}, 0, 0.85, [leak(0.6)])
    train = one.cell.train.model_copy(update={"learning_rate": 1.0})
    cell = one.cell.model_copy(update={"train": train})
    kept(folders[0], [one.model_copy(update={"cell": cell, "key": cell.key})])


def a_seed_without_a_result(folders):
    """No number changes, but it is the first record of its setting."""
    failed = leak(None, "eia-map", status="failed", reason="no memory")
    kept(folders[0], [record("sap", {"eta": 25.0}, -1, None, [failed])])


def a_folder_less(folders):
    del folders[1]


def a_folder_first(folders):
    folders.reverse()


def another_name(folders):
    folders[1] = folders[1].rename(folders[1].with_name("other"))


def a_submission(folders):
    keys = [path.stem for path in folders[1].glob("*.json")]
    entries = {key: Entry(suite="smoke", sha256="0" * 64) for key in keys}
    told = Manifest(method="mine", note="trained at night", records=entries)
    (folders[1] / SUBMITTED).write_text(told.model_dump_json())


CHANGES = [
    *(one_more, one_less, another_number, another_certificate, an_attack_elsewhere),
    *(another_parameter, another_rate, a_seed_without_a_result),
    *(a_folder_less, a_folder_first, another_name, a_submission),
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_site_built_again_is_to_the_byte_the_one_built_from_nothing(
    again, in_words, change, monkeypatch, tmp_path
):
    folders, site = again[0], shutil.copytree(in_words, tmp_path / "words")
    before = digests(site)
    drawn_in_words(monkeypatch)
    change(folders)
    publish(folders, site)
    after = digests(site)
    assert after != before
    assert after == from_nothing(folders, tmp_path)


def test_where_no_record_changed_nothing_is_built(again, monkeypatch):
    folders, site = again
    before = {path: path.stat().st_mtime_ns for path in site.rglob("*")}
    monkeypatch.setattr(build, "start", lambda: pytest.fail("processes that draw were started"))
    pages, built = publish(folders, site)
    assert (pages, built) == (len(list(site.rglob("*.html"))), 0)
    assert {path: path.stat().st_mtime_ns for path in site.rglob("*")} == before


def test_pages_and_figures_whose_records_did_not_change_are_carried_over(again, made):
    folders, site = again
    one = over_time()[1]
    kept(folders[1], [one.model_copy(update={"loss": [0.5, 0.25]})])
    _, built = publish(folders, site)
    whole = {"index.html", "records.html", "boards.html", "findings.html", "methods.html"}
    whole |= {"compare.html", "task.html"}  # of the record's task, and of no other
    methods = ["method.html"] * 2  # of p3eft and of spectral, which attacked it
    # The figure of losses is drawn again, and none of utility against privacy.
    assert sorted(made) == sorted([*whole, *methods, one.key, "time.training", "time.memory"])
    assert built == len(whole) + len(methods) + 1


def test_another_data_version_is_told_on_every_page_and_has_none_made_again_for_it(
    again, made, monkeypatch, tmp_path
):
    folders, site = again
    kept(folders[1], [over_time()[1].model_copy(update={"loss": [0.5, 0.25]})])
    monkeypatch.setattr(inputs, "data_version", lambda _: "data <7>")
    pages, built = publish(folders, site)
    assert built < pages
    assert over_time()[0].key not in made
    for page in site.rglob("*.html"):
        assert "its records alone<span data-records> (data &lt;7&gt;)</span>." in page.read_text(
            "utf-8"
        )
    assert digests(site) == from_nothing(folders, tmp_path)


def test_a_certificate_that_changes_has_the_pages_built_again_where_it_counts(again, made):
    folders, site = again
    another_certificate(folders)
    publish(folders, site)
    for one in plain_records():
        if one.cell.defense.name == "sap":
            assert one.key in made
            text = (site / "records" / f"{one.key}.html").read_text("utf-8")
            assert "certificate 0.46" in text  # (0.49 − 0.05) / 0.95
    assert over_time()[0].key not in made


@pytest.mark.parametrize("path", ["index.html", "figures/time.memory.pdf", "assets/site.js"])
def test_what_somebody_changed_in_a_site_is_not_carried_over(again, path, first):
    folders, site = again
    whole = digests(site)
    (site / path).write_text("changed")
    publish(folders, site)
    assert digests(site) == whole
    (site / path).unlink()
    publish(folders, site)
    assert digests(site) == whole


def test_a_link_in_a_site_is_not_followed(again, tmp_path):
    folders, site = again
    whole = digests(site)
    (site / "index.html").rename(tmp_path / "elsewhere.html")
    (site / "index.html").symlink_to(tmp_path / "elsewhere.html")
    publish(folders, site)
    assert not (site / "index.html").is_symlink()
    assert digests(site) == whole


@pytest.mark.parametrize(
    "told", ['{"files": ["index.html"]}', '{"files": {}, "code": 1, "inputs": [[1]]}', "{", "[]"]
)
def test_a_manifest_of_another_version_or_none_at_all_carries_nothing(tmp_path, told):
    (tmp_path / MANIFEST).write_text(told)
    previous = Previous.at(tmp_path)
    given = inputs.Inputs("code", {})
    assert not previous.files
    assert not previous.shows(given)
    assert previous.read(given) == frozenset()


def test_another_version_of_the_code_builds_everything_again(again, made, monkeypatch):
    folders, site = again
    whole = digests(site)
    monkeypatch.setattr(inputs, "version_of_code", lambda: "another")
    _, built = publish(folders, site)
    assert built == len(list(site.rglob("*.html")))
    assert {"time.training", "time.memory"} < set(made)
    rest = digests(site)
    assert {path for path in rest if rest[path] != whole[path]} == {MANIFEST}


def test_the_version_of_the_code_changes_with_a_template_and_with_a_library(monkeypatch, tmp_path):
    before = inputs.version_of_code()
    assert before == inputs.version_of_code()
    monkeypatch.setattr(inputs, "version", lambda name: "0" if name == "matplotlib" else "1")
    assert inputs.version_of_code() != before
    package = tmp_path / "its_package"
    (package / "templates").mkdir(parents=True)
    for name in ("__init__.py", "templates/page.html"):
        (package / name).write_text("one")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(inputs, "PROJECT", ("its_package",))
    first = inputs.version_of_code()
    (package / "templates" / "page.html").write_text("two")
    assert inputs.version_of_code() != first


def test_a_build_that_fails_midway_leaves_what_it_would_carry_over(again, monkeypatch):
    folders, site = again
    before = digests(site)
    one_more(folders)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(making, "export", full)
    with pytest.raises(LeakboardError, match="No space left"):
        publish(folders, site)
    assert digests(site) == before
    assert sorted(path.name for path in site.parent.iterdir()) == ["plain", "site", "time"]


def test_a_record_damaged_after_the_site_was_built_is_an_error(again):
    folders, site = again
    path = next(folders[0].glob("*.json"))
    told = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({**told, "reason": "another"}))
    with pytest.raises(LeakboardError, match="does not match its checksum"):
        publish(folders, site)


def test_disks_without_second_names_for_a_file_get_copies(again, monkeypatch, tmp_path):
    folders, site = again
    one_more(folders)

    def unknown(*_, **__):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("leakboard.leaderboards.site.previous.os.link", unknown)
    publish(folders, site)
    monkeypatch.undo()
    assert digests(site) == from_nothing(folders, tmp_path)
