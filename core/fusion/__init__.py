"""Fusion-Eval: several evaluators, one better judge.

::

    fused_run        fuse parts by name; a measured fusion, saved as fused.yaml                      fuse FusedRun
    fusion_settings  how to fuse and to measure; request and result of a run in a project            FusionSettings
    stack            combine judges without calls: average, ridge or non-negative weights            fuse
    model_rating     let a model rate with the assistants' numbers, by a plan and criteria           rate_by_model

The assistants of the paper are metrics (`core.metrics`) and judges.
"""
