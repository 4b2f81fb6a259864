"""The parts of a report, each gathered from the store on its own; `core.jobs.tasks.reports` joins them."""
