"""Code shared by several defenses: noise mechanisms, DP-SGD, redaction, secret detectors.

Input: a session and the parameters of a defense.
Output: noisy vectors, models trained with DP-SGD, and redacted texts.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
