"""Durable runs: the queue, its worker, and what a run reports; `core.projects.run_work` says what each does."""
