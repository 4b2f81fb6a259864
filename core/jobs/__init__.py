"""Durable runs: a queue, the worker that empties it, and `runs`, what each kind of run does."""
