"""Measure what private fine-tuning leaks, and what its privacy costs.

    import leakboard as lb

    r = lb.run("smoke", out="runs/smoke", workers=2)  # a suite: its name, file, dict, an lb.Suite
    s = lb.tune("matrix", "tuned.yaml", data="data")  # choose training settings for each row of a suite
    r = lb.load("runs/smoke"); p = lb.published("matrix")  # records of earlier runs; published records
    r.best(); r.table; r.frame(); r.findings(); r.plot()  # leakage and cost; sentences; figures
    with lb.Recorder(model, cut=0, out="wire/"):     # record a transcript of any training loop
        trainer.train()
    lb.attack("wire/", model="minilm", truth="train.csv")  # run every applicable attack on it
    lb.audit("adapter/", base="base/", members="train.csv", others="rest.csv")  # attack a trained model
    canaries = lb.Canaries(n=20)                     # for a Trainer: plants canaries before, audits after
    lb.choose(task="sst2", hide="inputs", max_cost=3.0)    # choose a setting within a budget of points
    lb.findings()                                    # conclusions from the published records, with numbers
    lb.report("runs/smoke", "report.html")           # a report of two pages for decision makers
    lb.diff("0.1.parquet", "runs/smoke")             # differences between records, with reasons

    class Mine(lb.Defense): ...                      # or lb.Attack
    lb.check(Mine).raise_if_failed()                 # test it against the rules for methods

Errors that a user can correct are `lb.LeakboardError`. Other modules may change without notice.
"""

from pathlib import Path

_FOLDERS = ("attacks", "bench", "defenses", "leaderboards")
"""Subpackages. In a checkout they are links to the folders of these names."""

if missing := [name for name in _FOLDERS if not Path(__file__).with_name(name).is_dir()]:
    raise ImportError(
        f"{Path(__file__).with_name(missing[0])} must be a link to the folder {missing[0]} of the checkout, "
        f"and is none (missing: {', '.join(missing)}). Run `git config core.symlinks true` and "
        "`git checkout -- leakboard`, or install the wheel: `pip install .`"
    )

import lazy_loader  # noqa: E402

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
