"""Runs a suite: the plan, its cells, the knowledge of attacks, and runners that resume.

Input: a `Suite`, and a store that may already contain some of its records. Output: a record for every cell, even if
its defense or an attack failed.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
