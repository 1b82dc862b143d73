"""Kinds of figures of `leakboard plot`, one file each, named for the kind.

The function `plots` of a file takes the records and the request. It yields the end of a file name and a plot for each
figure. Nothing else has to be edited.
"""
