"""The parts of a report, each gathered from the store on its own; `core.projects.reports` joins them."""
