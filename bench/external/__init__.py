"""External systems: recording their transcripts around a model, and attacking transcripts and trained models.

Input: a training loop, a transcript folder with the knowledge that its owner grants to attackers, or a trained
language model with texts of its training. Output: a transcript folder, or scores of every attack that applies.
An audit of a model reads each text once per model, for all attacks together.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
