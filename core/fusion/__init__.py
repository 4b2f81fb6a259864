"""Fusion-Eval (004): several evaluators, one better judge.

::

    assistants   numbers from classical metrics, models and columns    Assistant make_assistant assistants_for score_all
    estimators   average, ridge, non-negative weights                  make_estimator restore_estimator
    stack        judges joined without calls, told on unseen items     fuse ── Fusion; contradictions
    side_by_side every way to fuse the same parts in one table         fuse_all ── FusionTable
    taught       parts that learn, scored out of fold                  out_of_fold
    plan         which assistant serves which aspect, and how          read_plan measured_plan plan_messages
    llm          one call rates all aspects beside the assistants      FusionJudge

Heavy libraries are imported when an assistant scores, never on import.
"""
