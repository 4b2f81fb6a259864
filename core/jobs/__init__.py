"""Queue of runs and the worker process; `core.projects.start_and_resume` defines the runs."""
