"""What a scoring must have in common with the one that it goes on from."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from core.errors import ConcordError
from core.export.fused_judge import FusedJudge
from core.scoring.item_file import ItemFile, file_digest
from core.scoring.mending import models_behind
from core.scoring.output import is_csv
from core.scoring.request import RowJudge, ScoreRequest


def identity_of(request: ScoreRequest, items: ItemFile, judge: RowJudge | FusedJudge) -> dict[str, Any]:
    """As `output.what_differs` compares it."""
    return {
        "input": {"digest": items.digest, "n_items": items.n_items},
        "judge": {"digest": file_digest(request.judge_file)},
        **_weights_identity(judge),
        "options": {
            "judge": judge.spec,
            "explain": request.explain,
            "form": "csv" if is_csv(request.out) else "jsonl",
            "marks": list(judge.marks),
            "coverage": request.coverage,
            "abstain_over": request.abstain_over,
            **({"map": dict(request.mapping)} if request.mapping else {}),
        },
    }


def _weights_identity(judge: RowJudge | FusedJudge) -> dict[str, Any]:
    """The weights of models in the process, as far as they can be seen from here; nothing where there are none."""
    found = []
    for asked in models_behind(judge):
        if asked.spec.startswith("hf:"):
            with suppress(ConcordError):  # a model that lies on other nodes alone
                found.append(asked.provider.endpoint.rpartition(":")[0])  # whatever numbers it computes in
    return {"weights": found} if found else {}
