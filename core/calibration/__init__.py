"""AutoCalibrate (001): draft criteria from labelled exemplars, revisit, refine, and report on held-out.

`loop.calibrate` is the algorithm: it is given whom to ask, whom to tell and who keeps the answers.  `settings` has its
presets and choices.
The package is named for the noun because `core.calibrate(...)` is the public function.
"""
