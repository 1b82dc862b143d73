"""The site takes the place of the old one whole, or not at all."""

from __future__ import annotations

import sys

import pytest
from records import record
from site_records import PATHS, digests, kept

from leakboard.bench import cli
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.leaderboards.site import build
from leakboard.leaderboards.site.build import publish
from leakboard.leaderboards.site.markup import slug


def test_the_same_records_give_the_same_bytes(site, sources, tmp_path):
    publish(sources, tmp_path / "again")
    assert digests(tmp_path / "again") == digests(site)
    kinds = {name.rpartition(".")[2] for name in digests(site)}
    assert kinds == {"html", "css", "js", "json", "csv", "svg", "txt"}


def test_a_new_site_takes_the_place_of_an_old_one_and_leaves_nothing_else(copied, other):
    (copied / "index.html").write_text("old")
    publish(other, copied)
    assert (copied / "index.html").read_text("utf-8") != "old"
    assert not (copied / "defenses" / f"{slug(PATHS)}.html").exists()
    assert [path.name for path in copied.parent.iterdir()] == ["site"]


@pytest.mark.parametrize("where", ["collect", "write_site", "swap"])
def test_a_build_that_fails_leaves_the_old_site_whole(copied, other, monkeypatch, where):
    before = digests(copied)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(build, where, full)
    with pytest.raises((LeakboardError, OSError), match="No space left"):
        publish(other, copied)
    assert digests(copied) == before
    assert [path.name for path in copied.parent.iterdir()] == ["site"]


def test_the_old_site_comes_back_if_the_new_one_cannot_be_moved(copied, tmp_path):
    before = digests(copied)
    with pytest.raises(OSError, match="missing"):
        build.swap(tmp_path / "missing", copied)
    assert digests(copied) == before


def test_a_folder_that_is_no_site_is_never_replaced(tmp_path, sources):
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(LeakboardError, match="not a site built by leakboard"):
        publish(sources, tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_a_file_that_somebody_put_into_the_site_keeps_it_from_being_replaced(copied, sources):
    (copied / ".git").mkdir()
    (copied / ".git" / "HEAD").write_text("ref")
    with pytest.raises(LeakboardError, match=r"\.git/HEAD, which leakboard did not write"):
        publish(sources, copied)


def test_a_link_or_a_file_in_the_place_of_the_site_is_refused(tmp_path, sources, copied):
    (tmp_path / "link").symlink_to(copied)
    (tmp_path / "file").write_text("")
    for name in ("link", "file"):
        with pytest.raises(LeakboardError, match="is not a folder"):
            publish(sources, tmp_path / name)


def test_the_command_publishes_all_folders_of_results_published(
    tmp_path, other, monkeypatch, capsys
):
    kept(tmp_path / "published" / "a", [record(seed=1)])
    kept(tmp_path / "published" / "b", [record(seed=2)])
    (tmp_path / "published" / "picture.png").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("leakboard.bench.cli.reading.PUBLISHED", tmp_path / "published")
    monkeypatch.setattr(sys, "argv", ["leakboard", "publish"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code
    assert "site/index.html" in capsys.readouterr().out
    data = (tmp_path / "site" / "data" / "records.js").read_text("utf-8")
    assert all(record(seed=seed).key in data for seed in (1, 2))
