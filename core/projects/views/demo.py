"""Which project is the demo, for whoever shows it."""

from __future__ import annotations

DEMO_PROJECT = "demo"
"""Id of the demo project."""


def is_demo(project_id: str) -> bool:
    """Whether a project is the demo: what stands in it is simulated, and has to be shown as such."""
    return project_id == DEMO_PROJECT
