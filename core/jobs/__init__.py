"""Durable runs: `tasks` is what screens and the command line call; `engine` and `worker` run what they start."""
