"""Collections of records, and results of attacks on transcripts and trained models.

Input: records of a run, of folders or of the installation, or a transcript.
Output: `Results` and `Attacked`, which the public API and the commands use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
