"""Ablations of a calibration: what is asked for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AblationRequest:
    """The ablation table of the finished calibration `run_id`.

    `with_steps` False leaves the variant with other evaluation steps out: for a language model it costs most.
    """

    project_id: str
    golden_id: str
    aspect: str
    run_id: str
    with_steps: bool = True
