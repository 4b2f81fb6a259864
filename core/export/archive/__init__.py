"""The file of a project: a zip of JSON lines with a manifest, written whole, and read as if an enemy had made it.

``concord-project`` version 1 holds ``manifest.json`` and one ``tables/NAME.jsonl`` for each table of
`core.store.layout`, in that order.  JSON lines rather than Parquet: a person and any language read them without a
library, a line at a time in bounded memory, and no native decoder sees bytes of unknown origin.  Arrays of scores are
base64 of little-endian float64: exact to the bit, NaN (unscored) among them.

=================  ============================================================================================
module             does
=================  ============================================================================================
``manifest``       what the zip says about itself: versions, project, files with rows, size and SHA-256
``container``      the zip as a container: writing it whole or not at all, reading it without trusting it
``shapes``         JSON against the annotations of a record, or against the columns of a table
``events``         entries of the log against what their readers count on
``golden_rows``    golden sets: rebuilt, and their content hash computed again
``checking``       all rows of a project: shapes, keys, references, counts
=================  ============================================================================================

Nothing here touches a store: `core.projects.transfer` joins this with `core.store.transfer`.  Where a later version
changes a column, it raises `manifest.VERSION` and brings the rows of earlier ones up to it on reading.
"""
