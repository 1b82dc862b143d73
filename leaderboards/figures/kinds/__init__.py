"""What `leakboard plot` draws: one kind a file, which is all that it is.

A file is found by its name, which is the kind's: its function `plots` takes the records and the request,
and yields the end of a file's name and a plot for each figure. Nothing else has to be edited.
"""
