"""The tutorial on boards, command by command, with a tiny model in place of the real one."""

from __future__ import annotations

import re
import shlex

import yaml
from paths import ROOT
from typer.testing import CliRunner

from leakboard.bench.cli import app

PAGE = (ROOT / "docs" / "publish_a_board.md").read_text("utf-8")


def test_the_commands_of_the_page_make_a_site_and_a_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    suite = yaml.safe_load(re.search(r"^```yaml\n(.*?)^```$", PAGE, re.M | re.S)[1])
    small = {"model": "tiny-bert", "limit": 48, "train": {"epochs": 1}}
    (tmp_path / "my-board.yaml").write_text(yaml.safe_dump(suite | small), "utf-8")
    lines = re.findall(r"^ {4}leakboard (.*)$", PAGE, re.MULTILINE)
    assert len(lines) == 5
    for line in lines:
        words = shlex.split(line, comments=True)
        words = [
            word.replace("results/published/matrix", f"{ROOT}/results/published/offsite")
            for word in words
        ]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, f"{line}: {done.output}{done.exception}"
    assert "offsite-tuning" in (tmp_path / "site" / "data" / "results.csv").read_text("utf-8")
    assert "sap" in (tmp_path / "table.csv").read_text("utf-8")
