"""Records on disk and as a table: atomic writing, locks, provenance, versions, and comparison of two runs.

Input: a `Record`, or a folder of records.
Output: verified records, and whether two runs of one cell agree.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
