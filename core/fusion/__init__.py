"""Fusion-Eval: several evaluators, one better judge.

::

    fused_run        the one function: parts by name in, a measured fusion out, saved as fused.yaml   fuse FusedRun
    fusion_settings  how to fuse and to measure; what a run in a project is asked for and came to     FusionSettings
    stack            judges joined without calls by average, ridge or non-negative weights            fuse
    plan             plans, criteria and replies: texts headed by aspects, as people and models write them  read_plan
    model_rating     the call that rates all aspects with the assistants' numbers; what it is worth   rate_by_model

The assistants of the paper are metrics (`core.metrics`) and judges.
"""
