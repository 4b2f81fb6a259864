"""Durable runs: the queue, its worker, and what a run reports; `core.projects.run_control` says what each does."""
