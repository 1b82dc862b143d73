"""Output of commands: results, leaderboards, changes, and the summary of a run.

Input: results tables and frames.
Output: descriptions of tables, and sentences, which `printable` converts for rich.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
