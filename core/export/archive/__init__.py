"""The file of a project: a zip of JSON lines with a manifest, written whole, and read as if an enemy had made it.

``concord-project`` version 1 holds ``manifest.json`` and one ``tables/NAME.jsonl`` for each table of
`core.store.layout`, in that order.  JSON lines rather than Parquet: a person and any language read them without a
library, a line at a time in bounded memory, and no native decoder sees bytes of unknown origin.  Arrays of scores are
base64 of little-endian float64: exact to the bit, NaN (unscored) among them.

=================  ============================================================================================
module             does
=================  ============================================================================================
``container``      the zip and its manifest: written whole or not at all, read without trusting it
``shapes``         rows against the columns of a table, golden sets against their hash
``checking``       all rows of a project: shapes, keys, references, counts
=================  ============================================================================================

Nothing here touches a store: `core.projects.transfer` joins this with `core.store.transfer`.  Where a later version
changes a column, it raises `container.VERSION` and brings the rows of earlier ones up to it on reading.
"""
