"""Fusion-Eval: several evaluators, one better judge.

::

    fused_run        the one function: parts by name in, a measured fusion out, saved as fused.yaml   fuse FusedRun
    fusion_settings  how to fuse and to measure: options, arguments and requests are these fields     FusionSettings
    parts            the parts by name: metrics, judges fitted here or read from files                gather
    fusion_split     items fitted on and reported on; parts that learn are scored by fits without the item's source
    estimators       average, ridge, non-negative weights                     fit_estimator restore_estimator
    stack            judges joined without calls, measured on unseen items    fuse fuse_all
    aspect_texts     texts headed by aspects, as people and models write them; the model's replies  read_sections
    plan             which assistant serves which aspect, and how             read_plan measured_plan
    fusion_criteria  by what each aspect is rated: given, calibrated or written by the model        read_criteria
    model_rating     the call that rates all aspects with the assistants' numbers                   rate_by_model
    model_result     what its ratings are worth: aspects, all in all, without each assistant        measured_ratings
    fusion_request   what a run in a project is asked for, its price, its outcome                   FusionRequest

The assistants of the paper are metrics (`core.metrics`) and judges.
"""
