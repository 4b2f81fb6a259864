"""Durable runs: the queue, its worker, and what a run reports; `core.projects.run_kinds` says what each does."""
