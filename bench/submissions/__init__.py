"""Submissions of records by others: packing, verification, and reproduction of cells.

Input: an untrusted file or folder.
Output: accepted records, or the reasons for rejection.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
