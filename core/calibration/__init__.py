"""AutoCalibrate: draft criteria from labelled exemplars, select and refine them, and measure them on held-out items.

`loop.calibrate` is the algorithm. It receives the judge, a place to report progress, and a store for the answers.
`calibration_records` has its settings and presets. The package is a noun because `core.calibrate` is a function.
"""
