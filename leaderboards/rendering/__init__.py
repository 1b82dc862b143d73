"""Descriptions of tables and plots, each with two back ends.

Input: descriptions, `Table` and `Plot`.
Output: tables for the terminal and as HTML, and plots as files (PNG, SVG, PDF) and as SVG for pages.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
