"""Fusion-Eval (004): several evaluators, one better judge.

::

    run         the one function: parts by name in, a measured fusion out, saved as fused.yaml        fuse FusedRun
    settings    how to fuse and to measure: options, arguments and requests are these fields          FusionSettings
    parts       the parts by name: metrics, judges fitted here or read from files                     gather
    items       fitted on, reported on; parts that learn, each item scored by a fit without its source
    estimators  average, ridge, non-negative weights                  make_estimator restore_estimator
    stack       judges joined without calls, evaluated on unseen items; every method in one table    fuse fuse_all
    plan        which assistant serves which aspect, and how          read_plan measured_plan
    criteria    by what each aspect is rated: given, calibrated or written by the model    read_criteria
    llm         the call that rates all aspects beside the assistants; a model rates by a plan    rate_by_model
    model_result  what its ratings are worth: aspects, all in all, without each assistant  measured_ratings
    request     what a run in a project is asked for, its price, what came of it           FusionRequest
    replies     the model's replies read aspect by aspect                                  read_sections

The assistants of the paper are metrics (`core.metrics`) and judges.
"""
