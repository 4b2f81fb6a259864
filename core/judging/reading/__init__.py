"""The parts of the reader of ratings (`core.judging.parse`): where in a reply a value is stated, and how firmly.

`wording` holds vocabularies, patterns and numbers, `stated` finds labels, lone values and prose; `chinese`, `fields`
(JSON) and `options` (letters of multiple choice) have forms of their own.
"""
