"""AutoCalibrate (001): draft criteria from labelled exemplars, revisit, refine, and report on held-out.

`loop.calibration` is the algorithm as a generator of steps (`steps`), `settings` its presets and choices,
`drive.run_inline` the driver for the command line and notebooks; `core.jobs` drives it as a durable run.
The package is named for the noun because `core.calibrate(...)` is the public function.
"""
