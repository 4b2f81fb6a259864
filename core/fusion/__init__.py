"""Fusion-Eval (004): several evaluators, one better judge.

::

    estimators     average, ridge, non-negative weights                  make_estimator restore_estimator
    stack          judges joined without calls, evaluated on unseen items    fuse ── Fusion; contradictions
    side_by_side   every way to fuse the same parts in one table         fuse_all ── FusionTable
    cross_fitting  parts that learn, each item scored by a fit without its source    cross_fitted
    plan           which assistant serves which aspect, and how          read_plan measured_plan
    llm            the call that rates all aspects beside the assistants FusionJudge
    by_model       a model rates by a plan, or writes it first           rate_by_model ── ModelRatings
    records        LLM fusion in a project: request, estimate, result    FusionRequest FusionRunView

The assistants of the paper are metrics (`core.metrics`) and judges.
"""
