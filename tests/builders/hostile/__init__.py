"""What strangers may send, drawn by a seed: suites, submissions, folders of models, transcripts.

Each is an honest one of which something was changed. The same seed gives the same case.
"""
