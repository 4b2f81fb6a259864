"""AutoCalibrate: draft criteria from labelled exemplars, revisit, refine, and report on held-out items.

`loop.calibrate` is the algorithm: it is given the judge to ask, where to report progress, and who stores the answers.
`calibration_records` has its settings and presets.  The package is named for the noun because `core.calibrate(...)` is
the public function.
"""
