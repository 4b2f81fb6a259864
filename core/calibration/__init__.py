"""AutoCalibrate (001): draft criteria from labelled exemplars, revisit, refine, and report on held-out.

`loop.calibration` is the algorithm, a plain function that is given whom to ask (`pool.AskedJudge`) and whom to tell;
`settings` are its presets and choices.
The package is named for the noun because `core.calibrate(...)` is the public function.
"""
