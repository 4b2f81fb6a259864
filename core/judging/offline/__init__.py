"""The embedded judge: transparent text features, weighed by what the criteria say.  No key, no weights, no network.

`text` cuts texts into words and sentences (word lists in `lexicon`); `language`, `grammar`, `grounding` and `exchange`
measure them and `features` gathers the measurements; `scaling` makes them comparable without labels (shipped values in
`neutral`); `concepts` groups them under names, `wordings` and `cues` hold the words by which people mean them;
`clauses` writes criteria and `reading` reads them; `prior` is what an aspect's name says; `draft` and `refine` induce
criteria; `explanation` says what moved a score; `judge` joins all this behind the protocol.
"""
