"""The site: built whole from records, the same bytes each time, and used in a real browser."""

import gc
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from html.parser import HTMLParser
from urllib.parse import unquote

import psutil
import pytest
from records import estimate, leak, record

from bench import cli
from bench.contracts.channels import Channel
from bench.contracts.errors import LeakboardError
from bench.contracts.estimates import Estimate, Point
from bench.contracts.settings import Plant
from bench.contracts.threat import Goal
from bench.records.store import MANIFEST, Store, to_text
from bench.submissions.packing import Entry, Manifest
from bench.tasks.planting import CEILING
from leaderboards.site import build, charts, drawing
from leaderboards.site.build import publish
from leaderboards.site.pages import Pages, slug
from leaderboards.site.reading import collect
from leaderboards.tables.boards import QUESTIONS
from leaderboards.tables.comparisons import comparisons
from leaderboards.tables.matrix import matrices

EVIL = '</script><script>window.hacked=1</script><img src=x onerror="window.hacked=1">\' {{ 7*7 }} $a_{$'
LINK = "https://example.org/method?a=1"
PATHS = "../../../../tmp/escaped"


def curve():
    """Four moments of training."""
    at = (0, 10, 20, 30)
    return [Point(step=s, part=0, recipient="vendor", success=estimate(0.5 + s / 100)) for s in at]


def plain_records():
    """Two defenses on one task, three seeds each; one more setting with a single seed."""
    found = []
    for seed in (0, 1, 2):
        jitter = 0.004 * seed
        for eta, utility, success in ((None, 0.9, 0.99), (75.0, 0.8, 0.5), (50.0, 0.7, 0.2)):
            leaks = [
                leak(success + jitter, certificate=eta is None),
                leak(
                    0.9,
                    "logit-gradient",
                    Goal.LABEL,
                    0.5,
                    view="worst",
                    curve=[] if seed else curve(),
                ),
            ]
            undefended = eta is None
            found.append(
                record("sap", {"eta": eta}, seed, utility + jitter, leaks, undefended=undefended)
            )
        found.append(record("none", {}, seed, 0.91 + jitter, [leak(1.0)], undefended=True))
    found.append(record("sap", {"eta": 25.0}, 0, 0.6, [leak(0.1)]))
    return found


def over_time():
    """Two defenses whose label leak was followed, and a canary that one of them remembers."""
    label = leak(
        0.8, "spectral", Goal.LABEL, 0.5, channel=Channel.ACTIVATIONS, view="worst", curve=curve()
    )
    bits = Estimate(value=12.0, low=0.0, high=CEILING, n=1, chance=1.443)
    canary = leak(0.5, "canary-exposure", Goal.MEMORISATION, channel=Channel.MODEL)
    told = {"success": bits, "metric": "exposure", "ceiling": CEILING, "view": "planted 10 times"}
    canary = canary.model_copy(update=told)
    plain = record("none", leaks=[label, canary], task="sst2", undefended=True)
    return [plain, record("p3eft", {"weight": 0.1}, leaks=[label], task="sst2")]


def hostile_records():
    """Every text that a record may hold is an attempt to run a script, or to leave the folder."""
    evil = [
        leak(0.4, EVIL, params={EVIL: EVIL}, view=EVIL, attribute=EVIL, goal=Goal.ATTRIBUTE),
        leak(None, PATHS, status="failed", reason=EVIL, channel=None),
    ]
    return [
        record(EVIL, {EVIL: EVIL, "eta": 1}, 0, 0.8, evil, EVIL, EVIL, utility_metric=EVIL),
        record(PATHS, {"eta": 2}, 0, None, [leak(0.3)], PATHS, PATHS),
        record("none", {}, 7, None, [], status="failed", reason=EVIL),
    ]


def kept(folder, records):
    store = Store(folder)
    for one in records:
        store.write(one)
    return folder


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    place = tmp_path_factory.mktemp("records")
    made = {"plain": plain_records(), "hostile": hostile_records(), "time": over_time()}
    folders = [kept(place / name, records) for name, records in made.items()]
    entries = {one.key: Entry(suite="smoke", sha256="0" * 64) for one in made["hostile"]}
    told = Manifest(method=EVIL, note=f"note {EVIL}", link=LINK, records=entries)
    (place / "hostile" / MANIFEST).write_text(told.model_dump_json())
    return folders


@pytest.fixture(scope="module")
def site(tmp_path_factory, sources):
    to = tmp_path_factory.mktemp("www") / "site"
    publish(sources, to)
    return to


@pytest.fixture
def other(tmp_path, monkeypatch):
    """Few records, of which a site is built quickly, without figures for papers."""
    monkeypatch.setattr(charts, "files", lambda *_: [])
    return [kept(tmp_path.with_name(f"{tmp_path.name}-records"), [record()])]


@pytest.fixture
def copied(site, tmp_path):
    return shutil.copytree(site, tmp_path / "site")


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


def digests(folder):
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_the_same_records_give_the_same_bytes(site, sources, tmp_path):
    publish(sources, tmp_path / "again")
    assert digests(tmp_path / "again") == digests(site)
    kinds = {name.rpartition(".")[2] for name in digests(site)}
    assert kinds >= {"html", "css", "js", "json", "csv", "parquet", "svg", "png", "pdf"}


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
    page = (site / "index.html").read_text("utf-8")
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


def test_the_front_page_starts_with_the_matrix_and_the_questions(site, sources):
    page = (site / "index.html").read_text("utf-8")
    reviews = [one for one in plain_records() if one.cell.task == "reviews"]
    [matrix] = matrices(comparisons(reviews))
    shown = page[page.index('id="matrix-0"') : page.index('class="task"')]
    for line in matrix.lines:
        kept_there = line.shields["inversion", ""].kept
        shade = f'--kept: {100 * kept_there:.0f}%" data-sort="{kept_there!r}">{kept_there:.2f} '
        assert shade in shown
    boards = (site / "boards.html").read_text("utf-8")
    for name, question, *_ in QUESTIONS:
        assert (question in shown) == (question in boards), name
    assert QUESTIONS[1][1] in boards


def test_figures_of_single_folders_answer_what_no_table_does(site):
    text = (site / "boards.html").read_text("utf-8")
    shown = set(re.findall(r'<img src="figures/([^"]+)\.svg"', text))
    # The label leak of `plain` was read from representations, at one moment but for one record.
    assert shown == {"time.training", "time.memory"}
    for name in shown:
        assert all(
            (site / "figures" / f"{name}.{kind}").is_file() for kind in ("svg", "png", "pdf")
        )
    front = (site / "index.html").read_text("utf-8")
    assert {"boards.html#pictures-1", "boards.html#pictures-2"} <= set(
        re.findall(r'href="([^"]+)"', front)
    )


def test_one_seed_is_told_where_its_number_stands(site):
    page = (site / "index.html").read_text("utf-8")
    assert "† one seed: interval inside the cell" in page
    assert ">1†</td>" in page
    assert ">3</td>" in page


def test_what_failed_is_on_the_front_page(site):
    page = (site / "index.html").read_text("utf-8")
    assert "What failed (2)" in page


def test_a_new_site_takes_the_place_of_an_old_one_and_leaves_nothing_beside(copied, other):
    (copied / "index.html").write_text("old")
    publish(other, copied)
    assert "What private fine-tuning leaks" in (copied / "index.html").read_text("utf-8")
    assert not (copied / "defenses" / f"{slug(PATHS)}.html").exists()
    assert [path.name for path in copied.parent.iterdir()] == ["site"]


def test_figures_drawn_beside_are_those_that_are_drawn_here(site, sources, tmp_path):
    panel = Pages(collect(sources)).panels[0]
    title = f"{panel.task}: {panel.what}"
    for path in charts.files(panel.rows, tmp_path / panel.name, title, panel.about):
        assert path.read_bytes() == (site / "figures" / path.name).read_bytes()


def test_publishing_leaves_the_process_as_it_was_even_on_one_cpu(tmp_path, monkeypatch):
    monkeypatch.setattr(drawing, "cpu_count", lambda: 1)
    before = gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()
    publish([kept(tmp_path / "mine", [record()])], tmp_path / "site")
    assert (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count()) == before
    assert list((tmp_path / "site" / "figures").glob("reviews.*.svg"))


def test_what_was_trained_differently_shares_no_curves(tmp_path):
    told = [record(), record(epochs=5)]
    faster = told[0].cell.train.model_copy(update={"learning_rate": 1.0})
    cell = told[0].cell.model_copy(update={"train": faster})
    told.append(told[0].model_copy(update={"cell": cell, "key": cell.key}))
    pages = Pages(collect([kept(tmp_path / "mine", told)]))
    assert [len(panel.rows) for panel in pages.panels] == [1, 1, 1]
    (groups,) = pages.tasks.values()
    # The learning rate is told by no word, and still is no part of the same comparison.
    assert len(groups) == 3


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


@pytest.mark.parametrize("where", ["export", "get_plotlyjs", "_swap", "charts.files"])
def test_a_build_that_fails_leaves_the_old_site_whole(copied, other, monkeypatch, where):
    before = digests(copied)

    def full(*_):
        raise OSError(28, "No space left on device")

    if where == "charts.files":  # in another process
        monkeypatch.setattr(charts, "files", full)
    else:
        monkeypatch.setattr(build, where, full)
    with pytest.raises(LeakboardError, match="No space left"):
        publish(other, copied)
    assert digests(copied) == before
    assert [path.name for path in copied.parent.iterdir()] == ["site"]


def test_where_a_process_that_draws_is_ended_the_old_site_stays_whole(copied, other, monkeypatch):
    before = digests(copied)
    monkeypatch.setattr(charts, "files", lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(LeakboardError, match="ended from outside"):
        publish(other, copied)
    assert digests(copied) == before
    monkeypatch.undo()
    publish(other, copied)  # with new processes
    assert digests(copied) != before


def test_processes_that_draw_end_with_their_maker():
    code = (
        "import os, time; from leaderboards.site.drawing import start; made = start(); "
        "print(made.submit(os.getpid).result(), flush=True); "
        "busy = [made.submit(time.sleep, 600) for _ in range(4)]; time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as maker:
        assert maker.stdout is not None
        drawer = psutil.Process(int(maker.stdout.readline()))
        maker.kill()
    drawer.wait(timeout=20)


def test_the_old_site_comes_back_if_the_new_one_cannot_be_moved(copied, tmp_path):
    before = digests(copied)
    with pytest.raises(OSError, match="missing"):
        build._swap(tmp_path / "missing", copied)
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
    monkeypatch.setattr("bench.cli.reading.PUBLISHED", tmp_path / "published")
    monkeypatch.setattr(sys, "argv", ["leakboard", "publish"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code
    assert "site/index.html" in capsys.readouterr().out
    assert len(list((tmp_path / "site" / "records").glob("*.html"))) == 2


def test_no_records_and_damaged_records_are_errors(tmp_path):
    with pytest.raises(LeakboardError, match="nothing to publish"):
        publish([], tmp_path / "site")
    (tmp_path / "empty").mkdir()
    with pytest.raises(LeakboardError, match="empty holds no records"):
        publish([tmp_path / "empty"], tmp_path / "site")
    folder = kept(tmp_path / "some", [record()])
    (folder / "0123456789abcdef.json").write_text("{")
    with pytest.raises(LeakboardError, match=r"damaged records.*\n.*0123456789abcdef"):
        publish([folder], tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_a_record_of_a_later_schema_is_an_error_that_names_it(tmp_path):
    folder = kept(tmp_path / "later", [record()])
    path = next(folder.glob("*.json"))
    path.write_text(json.dumps({**json.loads(path.read_text()), "schema_version": 99}))
    with pytest.raises(LeakboardError, match=f"{path.name}: written with record schema 99"):
        publish([folder], tmp_path / "site")


def test_two_records_of_one_key_that_differ_are_an_error_that_names_both(tmp_path):
    a = kept(tmp_path / "a", [record(utility=0.9)])
    b = kept(tmp_path / "b", [record(utility=0.8)])
    with pytest.raises(LeakboardError, match=r"a/\w+\.json and .*b/\w+\.json .*differ in utility"):
        publish([a, b], tmp_path / "site")
    kept(tmp_path / "b", [record(utility=0.9, leaks=[leak(0.7)])])
    with pytest.raises(LeakboardError, match="differ in attack eia-nn"):
        publish([a, b], tmp_path / "site")


def test_the_attacks_of_one_cell_in_two_folders_are_joined(tmp_path):
    a = kept(tmp_path / "a", [record(leaks=[leak(0.5)])])
    b = kept(tmp_path / "b", [record(leaks=[leak(0.5), leak(0.9, "eia-map")])])
    found = build.collect([a, b])
    assert [one.attack.name for one in found.records[0].leaks] == ["eia-nn", "eia-map"]
    assert found.folders(found.records[0].key) == ["a", "b"]


def test_a_suite_without_utility_and_several_schemas_are_noted(tmp_path, other):
    a = kept(tmp_path / "a", [record(utility=None, utility_metric="")])
    old = record(seed=1)
    b = kept(tmp_path / "b", [old.model_copy(update={"schema_version": 0})])
    publish([a, b], tmp_path / "site")
    page = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert "No record of a has a utility" in page
    assert "several versions of the schema (0, 1)" in page


# In a browser ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    path = next((found for name in names if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("no Chromium is installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def open_page(browser, site):
    """Opens pages of the site without a network; at the end no error may have been logged."""
    contexts, errors = [], []

    def opened(path="index.html", width=1280, scheme="light"):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda told: told.type == "error" and errors.append(told.text))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("dialog", lambda dialog: errors.append(dialog.message))
        page.goto(f"file://{site / path}")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert errors == []


def inversion(page, part="plot"):
    """The curves, or the legend, of inversion on `reviews` under most defenses."""
    return page.locator(f".{part}[id^='{part}-reviews.'][id$='.inversion']").first


def drawn(page):
    page.wait_for_function(
        "[...document.querySelectorAll('.plot')].every(p => p.querySelector('.plot-container'))"
    )


def column(page, name):
    """The shown entries of a column of the table of settings."""
    return page.evaluate(
        """name => {
          const table = document.querySelector('#settings table');
          const at = [...table.tHead.rows[0].cells].findIndex(c => c.textContent.trim() === name);
          return [...table.tBodies[0].rows].filter(r => !r.hidden)
            .map(r => r.cells[at].innerText.split('\\n')[0].trim());
        }""",
        name,
    )


def test_no_page_errs_runs_foreign_script_or_is_wider_than_a_phone(open_page, site):
    page = open_page(width=390)
    for path in sorted(site.rglob("*.html")):
        page.goto(f"file://{path}")
        drawn(page)
        assert page.evaluate("window.hacked") is None, path
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path
        assert page.locator("h1").count() == 1
    assert "49" not in page.title()


def test_hostile_text_is_shown_as_it_is(open_page, site):
    page = open_page(f"defenses/{slug(EVIL)}.html")
    assert page.locator("h1").inner_text().strip() == EVIL
    page = open_page()
    drawn(page)
    names = page.locator(".legend button").all_inner_texts()
    assert any("<img src=x" in name for name in names)
    assert page.locator(".plot img").count() == 0


def test_a_column_sorts_up_and_down_with_missing_numbers_last(open_page):
    page = open_page()
    head = page.locator("#settings th", has_text="EP, paper's")
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    shown = column(page, "EP, paper's")
    numbers = [float(text) for text in shown if text != "–"]
    assert numbers == sorted(numbers)
    assert len(set(numbers)) > 2
    assert shown[len(numbers) :] == ["–"] * (len(shown) - len(numbers)) != []
    head.get_by_role("button").press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    shown = column(page, "EP, paper's")
    assert [float(text) for text in shown[: len(numbers)]] == sorted(numbers, reverse=True)
    assert page.locator("#settings th[aria-sort]").count() == 1


def test_filters_keep_the_rows_that_fit_all_of_them(open_page):
    page = open_page()
    total = len(column(page, "goal"))
    page.get_by_label("goal").select_option("label")
    assert set(column(page, "goal")) == {"label"}
    page.locator("#settings").get_by_label("search").fill("η = 50")
    assert set(column(page, "setting")) == {"η = 50"}
    assert page.locator("#settings output").inner_text() == f"1 of {total}"


def test_a_point_tells_its_numbers_and_leads_to_its_record(open_page):
    page = open_page()
    drawn(page)
    plot = inversion(page)
    plot.scroll_into_view_if_needed()
    at = plot.evaluate("p => p.data.findIndex(trace => trace.name === 'sap')")
    x, y = plot.evaluate(
        """(p, at) => {
          const l = p._fullLayout, t = p.data[at], box = p.getBoundingClientRect();
          return [box.x + l.xaxis._offset + l.xaxis.l2p(t.x[2]), box.y + l.yaxis._offset + l.yaxis.l2p(t.y[2])];
        }""",
        at,
    )
    page.mouse.move(x - 3, y)
    page.mouse.move(x, y)
    plot.locator(".hovertext").first.wait_for()
    told = plot.locator(".hovertext").inner_html()
    assert "empirical privacy" in told
    assert "3 seeds" in told or "one seed" in told
    page.mouse.click(x, y)
    page.wait_for_url("**/records/*.html")
    assert "sap" in page.locator(".lead").inner_text()


def test_a_curve_can_be_hidden_and_stays_hidden_in_the_other_theme(open_page):
    page = open_page()
    drawn(page)
    plot = inversion(page)
    key = inversion(page, "legend").get_by_role("button", name="sap").first
    key.click()
    assert key.get_attribute("aria-pressed") == "false"
    lines = plot.evaluate("p => p.querySelectorAll('.scatterlayer .trace').length")
    page.get_by_role("button", name="Dark theme").click()
    page.wait_for_timeout(200)
    assert plot.evaluate("p => p.querySelectorAll('.scatterlayer .trace').length") == lines
    assert lines < plot.evaluate("p => p.data.length")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_follows_the_system_until_the_reader_chooses(open_page, site, scheme):
    page = open_page(scheme=scheme)
    paper = "getComputedStyle(document.body).backgroundColor"
    colours = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 26)"}
    other = {"light": "dark", "dark": "light"}[scheme]
    assert page.evaluate(paper) == colours[scheme]
    page.locator("#theme").click()
    assert page.evaluate(paper) == colours[other]
    page.goto(f"file://{site / 'records.html'}")
    assert page.evaluate(paper) == colours[other]


def test_the_keyboard_finds_the_content_first_and_sees_where_it_is(open_page):
    page = open_page("records.html")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("Tab")
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    tables = page.locator("table")
    assert tables.count() == page.locator("table > caption").count() > 0
    assert page.locator("thead th:not([scope])").count() == 0


def test_without_script_the_numbers_are_there(browser, site):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"file://{site / 'index.html'}")
    assert "η = 50" in page.locator("#settings").inner_text()
    assert not page.locator("#theme").is_visible()
    context.close()


def test_bibtex_is_copied_or_selected(open_page):
    page = open_page("about.html")
    page.get_by_role("button", name="Copy").click()
    page.wait_for_function("document.querySelector('.copy').textContent !== 'Copy'")
    assert "@software{leakboard" in page.evaluate("getSelection().toString()")
