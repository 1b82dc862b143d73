"""What several attacks share: inverters, relaxations, label readers, exact ranks of secrets.

A transcript and the attacker's knowledge come in, never the truth.
Out go readings from which an attack makes its guesses.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
