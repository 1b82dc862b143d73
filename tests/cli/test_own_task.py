"""Somebody's own table of four topics on the command line, from the run to the site."""

from __future__ import annotations

import numpy as np
import pytest
from topics import FILLER, TOPICS

import leakboard as lb

SUITE = """
name: topics
task: {name: topics, path: topics.tsv, text: body, label: topic}
model: tiny-bert
limit: 128
train: {epochs: 1, batch_size: 32, learning_rate: 3.0e-3}
record: {examples: 128}
defenses: [frozen, p3eft, {dc: {weight: 0.5}}]
attacks: [spectral, norm, kmeans, prior]
"""


@pytest.mark.slow
def test_four_topics_of_a_file_are_run_shown_claimed_and_published(
    leakboard, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [
        (" ".join(rng.permutation([*rng.choice(words.split(), 3), *rng.choice(FILLER, 5)])), topic)
        for _ in range(60)
        for topic, words in TOPICS.items()
    ]
    lines = ["body\ttopic", *(f"{text}\t{topic}" for text, topic in rows)]
    (tmp_path / "topics.tsv").write_text("\n".join(lines) + "\n")
    (tmp_path / "topics.yaml").write_text(SUITE)
    code, out, err = leakboard("run", "topics.yaml", "--out", "records")
    assert (code, "5 cells of " in out) == (0, True), (out, err)

    frame = lb.load("records").frame()
    # Nobody asked for the twin, nor for what the untrained model tells.
    assert set(frame[frame["undefended"]]["defense"]) == {"none"}
    read = frame[(frame["channel"] == "activations") & (frame["status"] == "ok")]
    assert len(read)
    assert read["floor"].notna().all()
    scored = frame[(frame["status"] == "ok") & (frame["channel"] != "")]
    assert set(scored["flags"]) <= {
        "",
        "not-above-untuned",
        "uncertified-attack",
        "not-above-untuned,uncertified-attack",
    }

    _, shown, _ = leakboard("show", "records")
    best = leakboard("show", "records")
    words = ("baseline", "No protection · accuracy", "P³EFT", "Frozen encoder", "DC")
    assert all(word in shown for word in words), shown
    assert best[0] == 0
    code, told, _ = leakboard("findings", "records", "--format", "markdown")
    assert code == 0
    assert all(claim.startswith("- ") for claim in told.splitlines()), told
    code, out, err = leakboard("publish", "records", "--to", "site")
    assert (code, err) == (0, "")
    assert "topics" in (tmp_path / "site" / "index.html").read_text()
