"""The pages: what stands on them, and that nothing hostile does."""

from __future__ import annotations

import json
import re
from html import unescape
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest
from records import estimate, leak, record
from site_records import EVIL, LINK, PATHS, hostile_records, kept, plain_records

from leakboard.bench.contracts.cell import Plant
from leakboard.bench.contracts.errors import LeakboardError
from leakboard.bench.contracts.glossary import GLOSSARY
from leakboard.bench.records.store import MANIFEST, to_text
from leakboard.leaderboards.figures.curves import measured_curves
from leakboard.leaderboards.site.board_tables import matrix_table
from leakboard.leaderboards.site.build import publish
from leakboard.leaderboards.site.collection import collect
from leakboard.leaderboards.site.content import Content
from leakboard.leaderboards.site.links import Links as SiteLinks
from leakboard.leaderboards.site.links import slug
from leakboard.leaderboards.site.panels import by_task
from leakboard.leaderboards.site.record_tables import leaks_table
from leakboard.leaderboards.tables.comparisons import comparisons
from leakboard.leaderboards.tables.matrix import matrices
from leakboard.leaderboards.tables.questions import QUESTIONS


class Links(HTMLParser):
    """What a page links to and the ids that it has."""

    def __init__(self, text):
        super().__init__()
        self.links, self.ids = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.links += [found[name] for name in ("href", "src") if found.get(name)]
        self.ids += [found["id"]] if "id" in found else []


def test_every_link_leads_to_a_file_and_a_place_of_the_site(site):
    pages = {path: Links(path.read_text("utf-8")) for path in site.rglob("*.html")}
    for path, page in pages.items():
        assert len(page.ids) == len(set(page.ids)), f"{path}: an id stands twice"
        for link in page.links:
            if link.startswith(("https://", "data:")):
                continue
            file, _, anchor = link.partition("#")
            target = (path.parent / unquote(file)).resolve() if file else path
            assert target.is_file(), f"{path}: {link}"
            assert target.is_relative_to(site), f"{path}: {link} leaves the site"
            assert not anchor or anchor in pages[target].ids, f"{path}: {link}"


def test_nothing_is_loaded_from_elsewhere(site):
    for path in site.rglob("*.html"):
        text = path.read_text("utf-8")
        assert 'src="http' not in text
        assert '<link rel="stylesheet" href="http' not in text


def test_figures_hold_no_markup_from_records(site):
    page = (site / "tasks" / f"{slug(EVIL)}.html").read_text("utf-8")
    figures = re.findall(r'<script type="application/json" data-plot=[^>]*>(.*?)</script>', page)
    texts = []
    for figure in map(json.loads, figures):
        texts += [figure["layout"]["yaxis"]["title"]["text"]]
        for trace in figure["data"]:
            texts += [trace.get("name", ""), *trace.get("hovertext", [])]
    assert any("&lt;img src=x" in text for text in texts)
    assert not any("<" in re.sub("</?b>|<br>", "", text) for text in texts)


def test_pages_bear_no_names_from_records(site):
    assert slug("sap-cti") == "sap-cti"
    for name in (EVIL, PATHS, "", "Sap", "a/b", "..", "a" * 200):
        assert slug(name).startswith("x-")
    names = [path.name for path in site.rglob("*")]
    assert not any("escaped" in name or "script" in name for name in names)
    assert f"{slug(PATHS)}.html" in names


def test_each_record_can_be_run_again_from_its_page(site):
    one = plain_records()[0]
    page = (site / "records" / f"{one.key}.html").read_text("utf-8")
    assert f"leakboard run --record {one.key}" in page
    assert one.cell.data_hash in page
    assert (site / "records" / f"{one.key}.json").read_text("utf-8") == to_text(one)


def test_what_was_said_with_a_submission_stands_at_its_records_and_method(site, other):
    for page in [*(f"records/{one.key}.html" for one in hostile_records()), "defenses/none.html"]:
        text = (site / page).read_text("utf-8")
        assert text.count(f' <a href="{LINK}" rel="noopener nofollow">{LINK}</a>') == 1
        assert "note &lt;/script&gt;" in text
    for one in plain_records():
        assert "Submitted as" not in (site / "records" / f"{one.key}.html").read_text("utf-8")
    (other[0] / MANIFEST).write_text('{"method": 1}')
    with pytest.raises(LeakboardError, match=rf"{MANIFEST}: .*method"):
        publish(other, other[0] / "site")


def test_a_perplexity_stands_without_the_size_of_the_vocabulary(other):
    measures = {
        "perplexity per token": estimate(37.968, chance=1500.0),
        "exact match": estimate(0.25, chance=0.125),
    }
    one = record(seed=5, leaks=[], measures=measures)
    kept(other[0], [one])
    publish(other, other[0] / "site")
    text = (other[0] / "site" / "records" / f"{one.key}.html").read_text("utf-8")
    assert "37.968 [37.958, 37.978], n = 400; lower is better" in text
    assert "1500" not in text
    assert "0.250 [0.240, 0.260], n = 400, chance 0.125" in text
    assert "No attack was let loose on this cell." in text


def test_the_page_of_a_task_has_the_numbers_of_its_matrix(site):
    page = (site / "tasks" / "reviews.html").read_text("utf-8")
    reviews = [one for one in plain_records() if one.cell.task == "reviews"]
    [matrix] = matrices(comparisons(reviews))
    shown = page[page.index('id="matrix-0"') : page.index('class="task"')]
    for line in matrix.lines:
        kept_there = line.shields["inversion", ""].kept
        shade = f'--kept: {100 * kept_there:.0f}%" data-sort="{kept_there!r}">{kept_there:.2f} '
        assert shade in shown
    assert QUESTIONS[1][1] in (site / "boards.html").read_text("utf-8")


def test_figures_of_single_folders_answer_what_no_table_does(site):
    text = (site / "boards.html").read_text("utf-8")
    shown = set(re.findall(r'<img src="figures/([^"]+)\.svg"', text))
    # The label leak of `plain` was read from representations, at one moment but for one record.
    assert shown == {"time.training", "time.memory"}
    for name in shown:
        assert all(
            (site / "figures" / f"{name}.{kind}").is_file() for kind in ("svg", "png", "pdf")
        )


def test_one_seed_is_told_where_its_number_stands(site):
    page = (site / "tasks" / "reviews.html").read_text("utf-8")
    assert "† one seed: interval inside the cell" in page
    assert ">1†</td>" in page
    assert ">3</td>" in page


def test_what_failed_is_on_the_page_of_its_task_and_counted_on_the_front_page(site):
    for task in ("reviews", EVIL):
        page = (site / "tasks" / f"{slug(task)}.html").read_text("utf-8")
        assert "What failed (1)" in page, task
    assert "1 that failed" in (site / "index.html").read_text("utf-8")


def test_a_new_site_takes_the_place_of_an_old_one_and_leaves_nothing_beside(copied, other):
    (copied / "index.html").write_text("old")
    publish(other, copied)
    assert (copied / "index.html").read_text("utf-8") != "old"
    assert not (copied / "defenses" / f"{slug(PATHS)}.html").exists()
    assert [path.name for path in copied.parent.iterdir()] == ["site"]


def test_what_was_trained_differently_is_compared_and_never_averaged(tmp_path):
    told = [record(), record(epochs=5), record(precision="bf16")]
    faster = told[0].cell.train.model_copy(update={"learning_rate": 1.0})
    cell = told[0].cell.model_copy(update={"train": faster})
    told.append(told[0].model_copy(update={"cell": cell, "key": cell.key}))
    panels = Content(collect([kept(tmp_path / "mine", told)])).panels
    # The precision is no choice made for a defense.
    assert sorted(len(panel.rows) for panel in panels) == [1, 3]
    (groups,) = by_task(panels).values()
    assert len(groups) == 2
    together = max(panels, key=lambda panel: len(panel.rows)).rows
    assert together["n_seeds"].tolist() == [1, 1, 1]
    assert len({curve.name for curve in measured_curves(together)}) == 3


def test_settings_that_were_each_trained_in_their_own_way_are_one_curve(tmp_path):
    told = [record(params={"eta": eta}, epochs=e) for eta, e in ((50.0, 2), (75.0, 3), (90.0, 9))]
    (panel,) = Content(collect([kept(tmp_path / "mine", told)])).panels
    (curve,) = measured_curves(panel.rows)
    assert (curve.name, len(curve.rows)) == ("sap", 3)


def test_models_that_attackers_train_have_no_page(tmp_path, other):
    whole = record(seed=1)
    cell = whole.cell.model_copy(update={"shadow": 0, "plant": Plant(audit=4)})
    shadow = whole.model_copy(update={"cell": cell, "key": cell.key})
    publish([*other, kept(tmp_path / "shadows", [whole, shadow])], tmp_path / "site")
    pages = {path.stem for path in (tmp_path / "site" / "records").glob("*.html")}
    assert whole.key in pages
    assert shadow.key not in pages
    with pytest.raises(LeakboardError, match="all records are of shadow models"):
        publish([kept(tmp_path / "only", [shadow])], tmp_path / "site")


def test_findings_stand_with_their_rule_and_lead_to_their_records(sources, site):
    page = (site / "findings.html").read_text("utf-8")
    found = Content(collect(sources)).findings
    assert {one.rule for one in found} >= {"elsewhere", "setting"}
    text = unescape(re.sub(r"<[^>]+>", "", page))
    links = set(Links(page).links)
    for one in found:
        assert one.claim in text
        assert f"records/{one.keys[0]}.html" in links
    rules = {one.rule for one in found}
    assert page.count("<li>") == len(found) + len(rules)  # and where to find them


def test_what_is_not_shown_is_hatched_and_has_no_number(tmp_path):
    hidden = [record("sap", {"eta": 50.0}, 0, 0.9, [leak(0.05)])]
    bound = [record("sap", {"eta": 75.0}, 0, 0.9, [leak(0.5)])]
    plain = [record("none", {}, 0, 0.9, [leak(1.0)], undefended=True)]

    def table(records):
        (matrix,) = Content(collect([kept(tmp_path / str(len(records)), records)])).matrices
        return matrix_table(matrix, "matrix", SiteLinks())

    cells = [row[2] for row in table([*plain, *hidden]).rows]
    told = {row[0].text: row[2] for row in table([*plain, *hidden]).rows}
    assert len(cells) == 2
    assert told["sap"].text.startswith("not shown")
    assert (told["sap"].hidden, told["sap"].kept) == (True, None)
    assert (told["none"].hidden, told["none"].kept) == (False, 0.0)
    told = {row[0].text: row[2] for row in table([*plain, *bound, *hidden]).rows}
    assert told["sap"].kept is None


def test_pages_of_records_hatch_what_is_not_shown(tmp_path):
    folder = kept(tmp_path / "few", [record(leaks=[leak(0.05), leak(0.5, "eia-map")])])
    to = tmp_path / "site"
    publish([folder], to)
    (page,) = (to / "records").glob("*.html")
    text = page.read_text("utf-8")
    assert text.count('class="number unshown"') == 1
    assert "not shown" in text
    assert '<td class="number unshown"' in (to / "tasks" / "reviews.html").read_text("utf-8")


def test_what_an_audit_proves_has_what_it_could_have_proven_beside_it():
    audited = leak(0.6, "membership", epsilon=0.2, epsilon_ceiling=4.13)
    table = leaks_table(record("dpsgd", leaks=[audited, leak(0.6)]), {}, {}, SiteLinks())
    (told, other) = (str(row[-1].text) for row in table.rows)
    assert told == "proves ε ≥ 0.20, a perfect attacker proves ε ≥ 4.13"
    assert "ε" not in other


def test_tooltips_and_the_page_of_words_come_from_the_glossary(site):
    told = unescape((site / "about.html").read_text("utf-8"))
    assert all(f"<dd>{meaning}</dd>" in told for meaning in GLOSSARY.values())
    page = unescape((site / "tasks" / "reviews.html").read_text("utf-8"))
    heads = dict(re.findall(r'<th [^>]*title="([^"]*)"[^>]*><button type="button">([^<]*)', page))
    found = {name: about for about, name in heads.items()}
    assert found["EP, strongest"] == f"{GLOSSARY['EP']} {GLOSSARY['strongest']}"
    assert found["cost"] == GLOSSARY["cost"]
    assert GLOSSARY["privacy"] in page
