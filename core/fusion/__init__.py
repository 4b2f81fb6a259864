"""Fusion-Eval (004): several evaluators, one better judge.

::

    assistants   numbers from classical metrics, models and columns    Assistant make_assistant assistants_for score_all

Heavy libraries are imported when an assistant scores, never on import.
"""
