"""Runs of fusion and of judging styles (`core.projects.kinds` names all kinds)."""
