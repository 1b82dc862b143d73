"""Report for decision makers: what the provider can read, which defenses help, and next steps.

Input: records, or results of attacks on a transcript or a model.
Output: one self-contained HTML file of about two pages.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
