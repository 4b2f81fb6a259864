"""The embedded judge: transparent text features, weighed by what the criteria say.  No key, no weights, no network.

Tables (read once): `lexicon.yaml` holds the closed word classes, `features.yaml` every feature with its usual mean and
spread, `concepts.yaml` the concepts that criteria can name: their features, phrases and words.

Code: `text` cuts texts into words and sentences; `language`, `grammar`, `grounding` and `exchange` measure them and
`features` gathers the vectors; `scaling` makes them comparable without labels; `criteria` writes and reads the language
of criteria; `induce` drafts and refines; `explanation` says what moved a score; `judge` joins all this.
"""
