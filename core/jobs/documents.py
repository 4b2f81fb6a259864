"""Names of the documents that runs keep in the store beside their steps."""

STANDING = "standing"
"""The latest snapshot of the leaderboard (`core.calibration.steps.Standing`)."""

JUDGE = "judge"
"""The prepared judge (`core.jobs.tasks.programs.JudgeState`)."""

RESULT = "result"
"""What the run came to: a `Calibration` or a `RescoreView`."""
