"""Real pretrained models, cut after any block into a customer's bottom and a vendor's top.

A name comes in: an embedded model, a folder with safetensors, or a hub id; one file for each family.
Out go a `Backbone`, which nobody changes, its trainable copies (`Network`, `LanguageModel`), and tokens.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
