"""Fusion-Eval: combine several judges and metrics into one judge.

::

    fused_run        fuse parts by name; the measured fusion and its file fused.yaml            fuse FusedRun
    fusion_settings  settings; request, estimate and result of a fusion in a project            FusionSettings
    stack            combine judges without calls: average, ridge or non-negative weights       fuse
    model_rating     let a language model rate items, given the scores of the parts             rate_by_model

The paper's assistants are metrics (`core.metrics`) and judges.
"""
