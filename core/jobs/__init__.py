"""The queue of runs and its worker; `core.projects.run_control` has the functions of the runs."""
