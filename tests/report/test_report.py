"""The report for somebody who decides: what it says, that it holds everything, and how it prints."""

from __future__ import annotations

import re
import shutil
from html.parser import HTMLParser

import pytest
from boards import seeds
from records import leak, skipped
from site_records import EVIL

import leakboard as lb
from leakboard.bench.contracts.threat import Channel, Goal
from leakboard.bench.external.outcome import Audit
from leakboard.bench.records.store import Store
from leakboard.leaderboards.report import reporting
from leakboard.leaderboards.results.attacked import Attacked

pytestmark = pytest.mark.usefixtures("certified")


def label(success=0.9):
    found = leak(success, "logit-gradient", Goal.LABEL, 0.5, view="worst")
    return found.model_copy(update={"metric": "accuracy"})


def inverted(success):
    return [leak(success, chance=0.2), label()]


def cells(defense, utilities, successes, **fields):
    """Records of several seeds, in which texts are inverted and labels read."""
    made = seeds(defense, utilities, successes, **fields)
    return [
        one.model_copy(update={"leaks": inverted(success)})
        for one, success in zip(made, successes, strict=True)
    ]


OPEN = cells("none", [0.90, 0.91, 0.92], [0.95, 0.95, 0.95])
HIDING = cells("sap", [0.89, 0.90, 0.91], [0.30, 0.31, 0.32], params={"eta": 75.0})
DEAR = cells("sap", [0.60, 0.61, 0.62], [0.22, 0.21, 0.22], params={"eta": 50.0})
RECORDS = [*OPEN, *HIDING, *DEAR]


class Read(HTMLParser):
    """What a page shows as text, and what it loads."""

    def __init__(self, text):
        super().__init__()
        self.parts, self.loads, self.tags = [], [], []
        self._hidden = 0
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._hidden += tag in ("style", "script")
        self.loads += [value for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag):
        self._hidden -= tag in ("style", "script")

    def handle_data(self, data):
        if not self._hidden:
            self.parts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.parts).split())


def results(records=RECORDS):
    return lb.Results.of(records, "ours")


def attacked(*leaks, cut_short=""):
    return Attacked(Audit(list(leaks), cut_short=cut_short))


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Writes a report and reads it; the published records are those of `RECORDS`."""
    monkeypatch.setattr(reporting, "published", results)

    def made(source, **asked):
        return Read(lb.report(source, tmp_path / "report.html", **asked).read_text("utf-8"))

    return made


def test_it_says_what_is_read_what_protects_and_at_which_cost(written):
    text = written(results()).text
    assert "Your texts read : 95 % [95–95] of their tokens are found; guessing reaches 20 %" in text
    assert "Your labels read : 90 %" in text
    assert (
        "Your texts: for at most 2 points of utility, best hidden by sap η=75: 31 % are still found instead of 95 %, "
        "and it costs 1.0 [1.0, 1.0] points." in text
    )
    assert "Your labels: nothing is recommended; at no setting does clearly less leak" in text


def test_a_larger_budget_buys_the_setting_that_hides_more(written):
    assert "for at most 40 points of utility, best hidden by sap η=50" in (
        written(results(), max_cost=0.4).text
    )


def test_where_nothing_is_cheap_enough_the_cheapest_that_helps_is_named(written):
    text = written(results([*OPEN, *DEAR])).text
    assert "nothing helps for at most 2 points of utility; the cheapest that does is" in text


def test_it_holds_its_figures_and_loads_nothing(written):
    page = written(results())
    assert {load.split(",")[0].split(":")[0] for load in page.loads} == {"data"}
    assert sum(load.startswith("data:image/svg+xml;base64,") for load in page.loads) == 2
    assert "script" not in page.tags


def test_the_same_records_give_the_same_bytes(tmp_path):
    first, second = (lb.report(results(), tmp_path / f"{n}.html").read_bytes() for n in "ab")
    assert first == second


def test_of_a_transcript_it_says_what_ones_own_system_sends(written):
    found = attacked(
        leak(0.7, chance=0.1), leak(0.2, "eia-learned", chance=0.1), skipped(attack="eia-map")
    )
    text = written(found).text
    assert "In what your system sent, whoever receives it reads" in text
    assert "Your texts read in part : 70 % [69–71] of their tokens" in text
    assert "eia-nn, from the vectors that are sent of each word (400 examples)" in text
    assert "best hidden by sap η=75" in text
    assert "Attacks that were tried: eia-learned, eia-nn; without a result: eia-map." in text
    assert "One run stands behind your texts" in text


def test_an_attack_that_finds_nothing_clear_in_a_transcript_is_no_all_clear(written):
    text = written(attacked(leak(0.104, chance=0.1))).text
    assert "Your texts not shown : eia-nn found nothing clear" in text
    assert "10 %" not in text
    assert "Nothing is shown of your texts (eia-nn)" in text


def test_what_reads_nothing_is_no_reading(written):
    guess = leak(0.9, "prior", chance=0.1, channel=None)
    assert "prior" not in written(attacked(guess, leak(0.7, chance=0.1))).text


def test_what_was_written_of_an_attack_makes_the_same_report(written, tmp_path):
    found = attacked(leak(0.7, chance=0.1), cut_short="KeyboardInterrupt")
    file = found.write(tmp_path / "found.json")
    assert written(file).text == written(found).text
    assert "The recording was cut short (KeyboardInterrupt)" in written(file).text


def test_names_with_markup_stay_names(written):
    evil = leak(0.4, EVIL, channel=Channel.REPRESENTATIONS, attribute=EVIL, goal=Goal.ATTRIBUTE)
    page = written(attacked(evil))
    assert EVIL in "".join(page.parts)
    assert "script" not in page.tags


@pytest.fixture
def there(tmp_path, monkeypatch):
    """A folder with what may be given by mistake."""
    monkeypatch.setattr(reporting, "published", results)
    (tmp_path / "sent").mkdir()
    (tmp_path / "sent" / "manifest.json").write_text("{}")
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "half.json").write_text('{"leaks": [')
    (tmp_path / "bad.json").write_text('{"cut_short": "", "leaks": [{"goal": "x"}]}')
    return tmp_path


OURS, TO = results(), "report.html"
MISTAKES = {
    "another suffix": (OURS, "report.pdf", {}, "one .html file"),
    "no folder": (OURS, "no/report.html", {}, "there is no folder"),
    "a budget of 2": (OURS, TO, {"max_cost": 2}, "share of utility from 0 to 1"),
    "another task": (OURS, TO, {"task": "reviewz"}, "Did you mean 'reviews'?"),
    "no baseline": (results(HIDING), TO, {}, "a cell without protection"),
    "nothing scored": (attacked(), TO, {}, "no guess was scored"),
    "a model of records": (OURS, TO, {"model": "minilm"}, "model: goes with the folder"),
    "a transcript alone": ("sent", TO, {}, "is a transcript: give the public model"),
    "other JSON": ("other.json", TO, {}, "holds no 'leaks'"),
    "half a file": ("half.json", TO, {}, "not whole JSON"),
    "bad leaks": ("bad.json", TO, {}, "leaks: attack: Field required"),
    "no file": ("none.json", TO, {}, "No such file"),
    "a number": (7, TO, {}, "source: expected a path, got int 7"),
    "another task of what protects": (attacked(leak(0.7)), TO, {"task": "mnli"}, "of 'mnli'"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_and_nothing_is_written(name, there):
    source, to, asked, told = MISTAKES[name]
    with pytest.raises(lb.LeakboardError, match=re.escape(told)):
        lb.report(there / source if isinstance(source, str) else source, there / to, **asked)
    assert not (there / TO).exists()


def test_the_command_writes_the_report_of_a_folder(leakboard, tmp_path):
    for one in RECORDS:
        Store(tmp_path / "runs").write(one)
    to = tmp_path / "ours.html"
    code, out, _ = leakboard("report", tmp_path / "runs", "--to", to, "--budget", "40")
    assert (code, str(to) in out) == (0, True)
    assert "for at most 40 points" in Read(to.read_text("utf-8")).text


def test_the_folder_of_a_transcript_is_attacked_with_what_is_given(written, tmp_path, monkeypatch):
    asked = []

    def attack(folder, **given):
        asked.append((folder, given))
        return attacked(leak(0.7, chance=0.1))

    monkeypatch.setattr(reporting, "attack", attack)
    (tmp_path / "sent").mkdir()
    (tmp_path / "sent" / "manifest.json").write_text("{}")
    given = {"model": "minilm", "truth": "train.csv", "attributes": ["region"]}
    assert "70 %" in written(tmp_path / "sent", **given).text
    assert asked == [(tmp_path / "sent", given)]


def test_it_prints_on_two_to_four_pages_and_is_no_wider_than_a_phone(written, tmp_path):
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    path = next((found for name in names if (found := shutil.which(name))), None)
    if path is None:
        pytest.skip("no Chromium is installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    written(results())
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"file://{tmp_path / 'report.html'}")
        printed = page.pdf(prefer_css_page_size=True)
        page.set_viewport_size({"width": 390, "height": 800})
        width = page.evaluate("document.documentElement.scrollWidth")
        browser.close()
    assert width <= 390
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 4
