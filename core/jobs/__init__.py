"""The queue of runs and its worker; `core.projects.start_and_resume` has the functions of the runs."""
