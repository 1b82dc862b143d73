"""A sample plug-in."""
