"""The harness of Leakboard: suite files in, records out."""

__version__ = "0.3.0"
