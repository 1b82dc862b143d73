"""Findings: sentences about records, each from a declared rule, with numbers and keys of records.

`rules.py` declares comparisons and their sentences; `engine.py` evaluates them; `power.py` counts the seeds that they need.
Documents and pages quote the findings.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
