"""The embedded judge: transparent text features, weighed by criteria.  No key, no weights, no network.

Tables (read once): `lexicon.yaml` holds the closed word classes, `features.yaml` every feature with its usual mean and
spread, `concepts.yaml` and `measures.yaml` the phrases by which criteria name groups of features and single features.

Code: `text` cuts texts into words and sentences and measures them by themselves, `grounding` against their source.
`features` makes comparable concept values of that, and writes and reads criteria. `judge` scores, explains a score,
and drafts, refines and fits criteria.
"""
