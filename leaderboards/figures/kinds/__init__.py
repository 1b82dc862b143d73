"""What `leakboard plot` draws: one kind a file, which is all that it is.

A file is found by its name, which is the kind's: its function `plot` takes the records, the folder and
what was asked for, and returns the files that it wrote. Nothing else has to be edited.
"""
