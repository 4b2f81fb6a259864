"""The offline judge, which scores texts by text features that criteria weight. It needs no key, model or network.

Tables (read once): `lexicon.yaml` has the closed word classes, and `features.yaml` every feature with its typical mean
and spread. `concepts.yaml` and `measures.yaml` have the phrases for groups of features and for single features in
criteria.

Code: `text` splits texts into words and sentences and measures them on their own. `grounding` measures them against
their source. `features` turns the measurements into comparable concept values, and writes and parses criteria. `judge`
scores items, explains scores, and drafts, refines and fits criteria.
"""
