"""`leakboard show`, `export` and `plot` on the records of a run."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image


def test_show_tells_leakage_and_with_attacks_all_and_why_some_did_not_run(leakboard, records):
    code, out, _ = leakboard("show", records)
    assert code == 0
    assert "leakage" in out
    assert "more results with --all" in out
    assert "SAP, η = 75 · accuracy" in leakboard("show", records, "--all")[1]
    assert "frozen does not send logit-gradients" not in out
    code, out, _ = leakboard("show", records, "--attacks")
    assert code == 0
    assert "logit-gradient" in out
    assert "frozen does not send logit-gradients" in out


def test_show_can_be_limited_to_one_attack(leakboard, records):
    _, out, _ = leakboard("show", records, "--attack", "paper")
    assert "eia-nn" in out
    assert "logit-gradient (" not in out  # no paper measures labels
    code, _, err = leakboard("show", records, "--attack", "eia-n")
    assert code == 2
    assert "Did you mean 'eia-nn'" in err


def test_a_board_ranks_within_a_budget_and_takes_any_name_of_a_goal(leakboard, records):
    for word in ("inputs", "inversion"):
        code, out, _ = leakboard("board", records, "--goal", word, "--budget", 100)
        assert code == 0
        assert "inputs of reviews · tiny-bert" in out
        assert "at most 100 points" in out
        assert "SAP" in out
    for words, told in (
        (("--goal", "imputs"), "Did you mean 'inputs'"),
        (("--budget", -2), "points of utility from 0 to 100"),
        (("--task", "review"), "Did you mean 'reviews'"),
        (("--goal", "secrets"), "nothing to rank: no attack on secrets"),
        (("--papers",), "none of these suites repeats a paper's table"),
    ):
        code, _, err = leakboard("board", records, *words)
        assert code == 2
        assert told in " ".join(err.split())


def test_choose_answers_in_words_with_its_evidence(leakboard, records):
    code, out, _ = leakboard("choose", "reviews", "inputs", records, "--budget", 100)
    assert code == 0
    assert "Inputs of reviews, at most 100 points: " in out
    code, _, err = leakboard("choose", "reviews", "imputs", records)
    assert code == 2
    assert "Did you mean 'inputs'" in err


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json"])
def test_an_export_has_a_row_per_cell_and_attack(leakboard, records, tmp_path, suffix):
    file = tmp_path / f"all.{suffix}"
    code, _, _ = leakboard("export", records, file)
    assert code == 0
    reader = {"csv": pd.read_csv, "parquet": pd.read_parquet, "json": pd.read_json}[suffix]
    table = reader(file)
    ran = table[(table.attack == "eia-nn") & (table.view == "train")]
    assert sorted(ran.defense) == ["frozen", "none", "sap", "sap"]
    assert (ran.ep <= 1).all()


def test_plot_writes_three_formats_and_the_caption(leakboard, records, tmp_path):
    code, _, _ = leakboard("plot", records, "--out", tmp_path)
    assert code == 0
    assert {p.suffix: p.read_bytes()[:4] for p in tmp_path.iterdir()} == {
        ".png": b"\x89PNG",
        ".svg": b"<?xm",
        ".pdf": b"%PDF",
        ".txt": b"Leak",
    }


def test_plot_takes_width_title_format_and_style_of_a_paper(leakboard, records, tmp_path):
    style = tmp_path / "paper.mplstyle"
    style.write_text("figure.facecolor: ffff00\n", "utf-8")
    look = ["--width", "column", "--title", "Ours", "--format", "png,svg", "--style", style]
    code, _, err = leakboard("plot", records, "--out", tmp_path / "plots", *look)
    assert code == 0, err
    assert {p.suffix for p in (tmp_path / "plots").iterdir()} == {".png", ".svg", ".txt"}
    (png,) = (tmp_path / "plots").glob("*.png")
    picture = Image.open(png).convert("RGB")
    assert picture.width == 660  # 3.3 inches of 200 dots
    assert picture.getpixel((0, 0)) == (255, 255, 0)
    assert "<!-- Ours -->" in png.with_suffix(".svg").read_text("utf-8")


@pytest.mark.parametrize("option", ["--out", "--to"])
def test_a_folder_to_write_into_goes_by_both_names(leakboard, records, tmp_path, option):
    for command, made in (("plot", "*.png"), ("publish", "index.html")):
        folder = tmp_path / command
        code, _, err = leakboard(command, records, option, folder)
        assert code == 0, err
        assert list(folder.glob(made))


def test_a_folder_of_folders_is_published_like_its_folders(leakboard, records, tmp_path):
    shutil.copytree(records, tmp_path / "all" / "quick")
    for source, site in ((records, "one"), (tmp_path / "all", "all-of-them")):
        code, _, err = leakboard("publish", source, "--to", tmp_path / site)
        assert code == 0, err
    pages = [(tmp_path / site / "index.html").read_bytes() for site in ("one", "all-of-them")]
    assert pages[0] == pages[1]


@pytest.mark.parametrize("command", ["board", "export", "findings", "publish", "show"])
def test_a_file_among_folders_of_records_is_told_in_one_sentence(
    leakboard, tmp_path, monkeypatch, command
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").write_text("# Records\n", "utf-8")
    code, _, err = leakboard(command, "README.md", *(["table.csv"] if command == "export" else []))
    assert code == 2
    told = (
        "README.md is not a folder of records, nor a snapshot (.parquet). To give folders only: */"
    )
    assert told in " ".join(err.split())
    assert "leakboard run" not in err


def test_plot_against_a_swept_parameter_names_its_files_after_it(leakboard, records, tmp_path):
    code, _, _ = leakboard("plot", records, "--against", "eta", "--out", tmp_path)
    assert code == 0
    assert {p.name for p in tmp_path.iterdir()} == {
        f"quick-inputs-by-eta.{kind}" for kind in ("png", "svg", "pdf", "txt")
    }


def test_export_prints_tables_for_papers_and_writes_them(leakboard, records, tmp_path):
    code, latex, err = leakboard("export", records, "--format", "latex", "--goal", "inputs")
    assert code == 0, err
    assert latex.count("\\toprule") == latex.count("\\bottomrule") == 1
    rows = re.findall(r"^(?:SAP|Frozen encoder|No protection) .*\\\\$", latex, re.MULTILINE)
    assert len(rows) == 4
    assert any("$\\eta$ = " in row for row in rows)
    code, told, _ = leakboard("export", records, tmp_path / "t.md")
    assert (code, told.strip()) == (0, str(tmp_path / "t.md"))
    tables = (tmp_path / "t.md").read_text("utf-8")
    assert "**Leakage of inputs on reviews" in tables
    code, _, err = leakboard("export", records)
    assert code == 2
    assert "--format latex" in err


def broken(folder, **changes):
    """A copy of a good record file with some top-level values changed, under its own key."""
    source = next(folder.glob("*.json"))
    content = json.loads(source.read_text()) | changes
    return source.name, json.dumps(content)


def test_a_suffix_that_cannot_be_written_names_those_that_can(leakboard, records, tmp_path):
    code, _, err = leakboard("export", records, tmp_path / "all.xlsx")
    assert code == 2
    assert ".parquet" in err


def test_a_damaged_record_is_named_and_the_rest_is_shown(leakboard, records, tmp_path):
    for path in records.glob("*.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    name, text = broken(records, status="failed")
    (tmp_path / name).write_text(text)
    code, out, err = leakboard("show", tmp_path)
    assert code == 0
    assert name in err
    assert "checksum" in err
    assert "eia-nn" in out


def test_a_record_of_a_later_schema_stops_with_the_advice_to_upgrade(leakboard, records, tmp_path):
    name, text = broken(records, schema_version=99)
    (tmp_path / name).write_text(text)
    code, _, err = leakboard("show", tmp_path)
    assert code == 2
    assert "Upgrade leakboard" in err
    assert (tmp_path / name).read_text() == text


def test_findings_are_claims_with_their_records_in_words_data_and_documents(
    leakboard, records, tmp_path
):
    code, out, _ = leakboard("findings", records)
    assert code == 0
    assert "findings; all with --all" in out or "finding; all with --all" in out
    code, out, _ = leakboard("findings", records, "--all")
    assert code == 0
    assert "no protection of" in " ".join(out.split())
    assert "records" in out
    code, out, _ = leakboard("findings", records, "--format", "json", "--rule", "idle")
    found = json.loads(out)
    assert {one["rule"] for one in found} == {"idle"}
    keys = {path.stem for path in records.glob("*.json")}
    assert all(set(one["keys"]) <= keys and one["keys"] for one in found)
    _, out, _ = leakboard("findings", records, "--format", "markdown", "--rule", "idle")
    assert out.splitlines() == [f"- {one['sentence']}" for one in found]
    page = tmp_path / "page.md"
    page.write_text("<!-- findings: idle -->\n<!-- /findings -->\n")
    assert leakboard("findings", records, "--into", page)[0] == 0
    assert all(one["sentence"] in page.read_text() for one in found)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "no such file"),
        (b"\xff\xfe", "cannot be read as text: it is not UTF-8"),
        (b"no block", "has no block of findings"),
    ],
)
def test_findings_go_into_a_document_that_has_a_place_for_them(
    leakboard, records, tmp_path, content, told
):
    page = tmp_path / "page.md"
    if content is not None:
        page.write_bytes(content)
    code, _, err = leakboard("findings", records, "--into", page)
    assert code == 2
    assert told in err
    assert str(page) in err
    assert content == (page.read_bytes() if page.exists() else None)


def test_a_document_is_replaced_as_a_whole_or_stays(leakboard, records, tmp_path, monkeypatch):
    page, link = tmp_path / "page.md", tmp_path / "link.md"
    before = "<!-- findings: idle -->\n<!-- /findings -->\n"
    page.write_text(before)
    page.chmod(0o640)
    link.symlink_to(page)
    whole = Path.write_text

    def half(path, text, *args):
        whole(path, text[:30], *args)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", half)
        assert leakboard("findings", records, "--into", link)[0] == 2
    assert page.read_text() == before
    assert leakboard("findings", records, "--into", link)[0] == 0
    assert "no protection of" in page.read_text()
    assert (link.is_symlink(), page.stat().st_mode & 0o777) == (True, 0o640)
    assert {path.name for path in tmp_path.iterdir()} == {"page.md", "link.md"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--rule", "elsewere"), "Did you mean 'elsewhere'"),
        (("--format", "jason"), "Did you mean 'json'"),
    ],
)
def test_findings_refuse_unknown_words(leakboard, records, words, told):
    code, _, err = leakboard("findings", records, *words)
    assert code == 2
    assert told in err
