"""Durable runs: the queue, its worker, and what a run tells of itself; `core.projects.kinds` says what each does."""
