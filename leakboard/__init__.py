"""Measure what private fine-tuning leaks, and what its privacy costs.

    import leakboard as lb

    r = lb.run("smoke", out="runs/smoke", workers=2)  # a suite: its name, file, dict, an lb.Suite
    s = lb.tune("matrix", "tuned.yaml", data="data")  # the suite, each row trained as is best for it
    r = lb.load("runs/smoke"); p = lb.published("matrix")  # records of earlier runs; those that are shipped
    r.best(); r.table; r.frame(); r.findings(); r.plot()  # leakage and cost; sentences; figures
    with lb.Recorder(model, cut=0, out="wire/"):     # around any training loop: a transcript
        trainer.train()
    lb.attack("wire/", model="minilm", truth="train.csv")  # every attack that applies to it
    lb.audit("adapter/", base="base/", members="train.csv", others="rest.csv")  # a model that is trained already
    lb.choose(task="sst2", hide="inputs", max_cost=3.0)    # a setting within a budget of points, and its evidence
    lb.findings()                                    # what the published records show, as claims with numbers
    lb.report("runs/smoke", "report.html")           # two pages for somebody who decides
    lb.diff("0.1.parquet", "runs/smoke")             # what changed, and why

    class Mine(lb.Defense): ...                      # or lb.Attack, with the nouns below
    lb.check(Mine).raise_if_failed()                 # whether it keeps the rules

What a user can mend is an `lb.LeakboardError`. What is not named here may change without notice.
"""

from pathlib import Path

_FOLDERS = ("attacks", "bench", "defenses", "leaderboards")
"""Packages inside this one. In a checkout they are links to the folders of that name beside it."""

if missing := [name for name in _FOLDERS if not Path(__file__).with_name(name).is_dir()]:
    raise ImportError(
        f"{Path(__file__).with_name(missing[0])} must be a link to the folder {missing[0]} of the checkout, "
        f"and is none (missing: {', '.join(missing)}). Run `git config core.symlinks true` and "
        "`git checkout -- leakboard`, or install the wheel: `pip install .`"
    )

import lazy_loader  # noqa: E402

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
