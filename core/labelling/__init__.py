"""Labelling by people: who rates what, in which order, how well they agree, and the golden set that comes of it.

Pure: records in, records out.  What raters save is kept by `core.store.labels`, one row a save.
"""
