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
from leakboard.bench.records.store import Store
from leakboard.leaderboards.report import reporting
from leakboard.leaderboards.report.advice import Advice
from leakboard.leaderboards.results.attacked import Attacked
from leakboard.leaderboards.tables import MISSING, Choice, curves
from leakboard.leaderboards.tables.curves import NEVER


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


SAME = [0.95, 0.95, 0.95]
OPEN = [
    *cells("none", [0.90, 0.91, 0.92], SAME),
    *cells("untuned", [0.50, 0.50, 0.50], SAME, undefended=True),
    *cells("sap", [0.90, 0.91, 0.92], SAME, params={"eta": None}, undefended=True),
]
HIDING = cells("sap", [0.89, 0.90, 0.91], [0.30, 0.31, 0.32], params={"eta": 75.0})
MILD = cells("sap", [0.89, 0.90, 0.91], [0.90, 0.91, 0.90], params={"eta": 90.0})
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
    return Attacked(tuple(leaks), cut_short=cut_short)


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Writes a report and reads it; the published records are those of `RECORDS`."""
    monkeypatch.setattr(reporting, "published", results)

    def made(source, **asked):
        return Read(lb.report(source, tmp_path / "report.html", **asked).read_text("utf-8"))

    return made


def test_it_says_what_is_read_what_helps_and_what_to_do_next(written):
    text = written(results()).text
    assert (
        "Your texts can be read : 95 % of the tokens are recovered; guessing reaches 20 %" in text
    )
    assert "Your labels can be read : 90 % are guessed correctly; guessing reaches 50 %" in text
    assert (
        "Inputs: SAP, η = 75 reduces leakage to 15 % [11, 18], for 1.0 of the 41.0 points gained."
        in text
    )
    assert "Labels of reviews, at most 3 points: no defense made for labels was measured." in text
    assert "To hide inputs, use SAP, η = 75, and measure it on your own data" in text
    assert "Nothing is known about labels: measure them on your own data before you decide." in text


@pytest.mark.parametrize(
    ("goal", "halving", "certified", "told"),
    [
        (Goal.MODEL, False, True, "hide the model: no measured setting halves its leakage"),
        (Goal.LABEL, False, True, "hide labels: no measured setting halves their leakage"),
        (Goal.MODEL, False, False, "Nothing is known about the model: measure it on your own"),
        (Goal.MODEL, True, True, "To hide the model, accept a cost of 30.0 of the "),
        (Goal.MODEL, True, True, "or do not hand it out."),
        (Goal.MEMBERSHIP, True, True, "To hide membership, accept a cost of 30.0 of the "),
        (Goal.LABEL, True, True, "or keep them out of the training."),
    ],
)
def test_advice_speaks_of_one_thing_in_the_singular(goal, halving, certified, told):
    nothing = Choice("reviews", goal, 3.0, None, MISSING, None, (), "")
    (curve,) = [
        c
        for c in curves(results([*OPEN, *DEAR]).table)
        if c.goal is Goal.INVERSION and c.defense == "sap"
    ]
    half = curve.cost_of_halving() if halving else NEVER
    sentences = reporting.report_templates().get_template("sentences.html").module
    assert told in sentences.next_step(Advice(nothing, half, certified))


def test_a_setting_that_leaves_most_readable_is_not_recommended(written):
    text = written(results([*OPEN, *MILD, *DEAR])).text
    assert "Inputs: nothing within 3 points halves the leakage. The least is 94 %" in text
    assert (
        "To hide inputs, accept a cost of 30.0 of the 41.0 points gained (SAP, η = 50 leaks 2 %)"
        in text
    )
    assert "best" not in text.lower()


def test_a_larger_budget_buys_the_setting_that_leaks_less(written):
    assert "SAP, η = 50 reduces leakage to 2 %" in written(results(), max_cost=40).text


def test_where_nothing_is_cheap_enough_the_cheapest_that_helps_is_named(written):
    text = written(results([*OPEN, *DEAR])).text
    assert (
        "no setting within the budget clearly reduces leakage. The cheapest that does is SAP, η = 50"
        in text
    )
    assert "To hide inputs, accept a cost of 30.0 of the " in text


def test_where_no_attack_works_without_protection_nothing_is_said_of_leakage(written):
    weak = [0.21, 0.20, 0.21]
    off = cells("sap", [0.9, 0.9, 0.9], weak, params={"eta": None}, undefended=True)
    text = written(
        results(
            [
                *cells("none", [0.9, 0.9, 0.9], weak),
                *off,
                *cells("sap", [0.9] * 3, weak, params={"eta": 50.0}),
            ]
        )
    ).text
    assert "Your texts not certified : no attack is shown to work" in text
    assert "Inputs of reviews, at most 3 points: not certified" in text
    assert "Nothing is known about inputs" in text


def test_it_says_what_a_data_protection_assessment_needs(written):
    text = written(results()).text
    assert (
        "A failed attack proves nothing unless the same attack works with the protection off"
        in text
    )
    assert "low leakage does not make personal data anonymous" in text
    assert (
        "Not measured here: which text was sent, attributes of the people who wrote, secrets in your texts"
        in text
    )


def test_it_loads_nothing_and_runs_nothing(written):
    page = written(results())
    assert {load.split(",")[0].split(":")[0] for load in page.loads} == {"data"}
    assert "script" not in page.tags


def test_the_same_records_give_the_same_bytes(tmp_path):
    first, second = (lb.report(results(), tmp_path / f"{n}.html").read_bytes() for n in "ab")
    assert first == second


def test_of_a_transcript_it_says_what_ones_own_system_sends(written):
    found = attacked(
        leak(0.7, chance=0.1), leak(0.2, "eia-learned", chance=0.1), skipped(attack="eia-map")
    )
    text = written(found).text
    assert "From what your system sent, whoever receives it can read" in text
    assert "Your texts can be read in part : 70 % [69, 71] of the tokens are recovered" in text
    assert "attack eia-nn on the vector sent for each word (400 units, one run)" in text
    assert "SAP, η = 75 reduces leakage" in text


def test_an_attack_that_finds_nothing_clear_in_a_transcript_is_no_all_clear(written):
    text = written(attacked(leak(0.104, chance=0.1))).text
    assert "Your texts not certified : no attack is shown to work (the strongest is eia-nn)" in text
    assert "10 %" not in text


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
    "a budget of −1": (OURS, TO, {"max_cost": -1}, "points of utility from 0 to 100"),
    "another task": (OURS, TO, {"task": "reviewz"}, "Did you mean 'reviews'?"),
    "no baseline": (results(HIDING), TO, {}, "a cell without protection"),
    "nothing scored": (attacked(), TO, {}, "no guess was scored"),
    "a model of records": (
        OURS,
        TO,
        {"model": "minilm"},
        "model: is only allowed for a transcript folder",
    ),
    "a transcript alone": ("sent", TO, {}, "is a transcript: give its public model"),
    "other JSON": ("other.json", TO, {}, "holds no 'leaks'"),
    "half a file": ("half.json", TO, {}, "not valid JSON"),
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
    assert "for at most 40 points of utility" in Read(to.read_text("utf-8")).text


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


def test_it_names_what_is_read_of_the_first_texts_and_not_of_chosen_ones(written):
    counted = leak(0.7).model_copy(update={"raw": {"hits": [1, 5, 0, 9], "tokens": [4, 5, 3, 9]}})
    text = written(attacked(counted)).text
    assert "Of the first texts it reads 1 of 4 tokens, 5 of 5, 0 of 3." in text
    uneven = leak(0.7).model_copy(update={"raw": {"hits": [1, 5], "tokens": [4]}})
    assert "Of the first texts" not in written(attacked(uneven)).text


def test_the_assessment_says_who_measured_when_and_that_nobody_checked(written):
    first, *others = RECORDS
    made = first.provenance.model_copy(
        update={"created": "2001-02-03T04:05:06+00:00", "leakboard": "0.0.9"}
    )
    text = written(results([first.model_copy(update={"provenance": made}), *others])).text
    assert "measured the exposure from 2001-02-03 to " in text
    assert "with Leakboard 0.0.9" in text
    assert "no third party has checked it" in text


def test_it_prints_on_two_pages_and_is_no_wider_than_a_phone(written, tmp_path):
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
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) <= 2
