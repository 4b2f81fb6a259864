"""RepEval files (`repeval.yaml`): that of a run; and those that people bring to Compare, as judges of a project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from core.data.split import KnownTexts, text_digest
from core.errors import NotFoundError
from core.metrics import Metric, MetricScores, as_judge
from core.project_records import GoldenSummary
from core.records import GoldenSet, JudgeScores, Scale
from core.repeval import EMBEDDED
from core.settings import Settings
from core.store.store import Store
from core.wording import number


def repeval_file(store: Store, run_id: str) -> str:
    """The text of a finished run's `repeval.yaml`: what `score --judge-file` applies to other items.

    NotFoundError for an unknown run and for one that kept no score for other items: another kind of run, one that is
    not done, or one of an earlier version.
    """
    from core.judge_files.judge_writing import yaml_text
    from core.projects.kinds import run_view
    from core.projects.repeval import RepEvalOutcome
    from core.repeval.fitted import repeval_card

    run = run_view(store, run_id)
    result = run.outcome.result if isinstance(run.outcome, RepEvalOutcome) else None
    if result is None or result.scorer is None:
        raise NotFoundError(f"Run {run_id} kept no score for other items: start the RepEval anew.")
    return yaml_text(repeval_card(store.goldens.load(run.golden_id), result, created=run.finished_at))


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What a RepEval file says of itself; `alignment` in words, `embedded` where its model comes with Concord."""

    aspect: str
    golden_name: str
    kind: str
    scale: Scale
    method: str
    model: str
    alignment: str

    @property
    def embedded(self) -> bool:
        return self.model == EMBEDDED

    def differences(self, golden: GoldenSummary, aspect: str) -> list[str]:
        """What sets `golden` apart from what it was fitted on, in sentences."""
        from core.repeval.transfer import Rated, differences

        ours = golden.aspect(aspect)
        assert ours is not None
        theirs = Rated(self.golden_name, self.kind, self.aspect, self.scale)
        return differences(Rated(golden.name, golden.kind, aspect, ours.scale), theirs)


def judge_file_facts(text: str, name: str) -> FileFacts:
    """JudgeError for a file that is damaged, of another kind, or was edited; nothing is loaded."""
    from core.judge_files.judge_reading import open_text

    card = open_text(text, name, "repeval").card
    told = card["alignment"]
    value = "undefined" if told["value"] is None else number(told["value"], 3)
    ends = f" [{number(told['interval'][0], 3)}, {number(told['interval'][1], 3)}]" if told.get("interval") else ""
    words = f"{told['statistic']} {value}{ends}, {told['level']} level, n = {told['n']}"
    task, scale = card["task"], card["task"]["scale"]
    return FileFacts(
        *(task["aspect"], card["golden"]["name"], task["kind"], Scale(scale["low"], scale["high"], scale["step"])),
        *(card["method"], str(card["scorer"]["model"]), words),
    )


@dataclass(frozen=True, slots=True)
class JudgeFile:
    """A `repeval.yaml` as `text`, to be a judge called `name`.

    `model` is what a person named as the place of its model, ID_OR_PATH, and allowed with that; "" for the embedded one
    and for those that the installation lists.
    """

    name: str
    text: str
    model: str = ""

    def opened(self, settings: Settings) -> OpenedFile:
        """Checked, and ready to rate; no model is loaded.

        JudgeError for a damaged or edited file, ConsentError where nobody has allowed its model.
        """
        from core.judge_files.judge_reading import open_text
        from core.judge_files.loading import repeval_judge

        card = open_text(self.text, self.name, "repeval").card
        judge = repeval_judge(card, f"hf:{self.model}" if self.model else None, settings, where=self.name)
        if judge.refusal is not None:
            raise judge.refusal
        return OpenedFile(self.name, judge.metric, card)


@dataclass(frozen=True)
class OpenedFile:
    """A judge's file with what rates by it."""

    name: str
    metric: Metric
    card: Mapping[str, Any]

    def as_judge(self, scores: MetricScores, golden: GoldenSet, aspect: str) -> JudgeScores:
        """As a judge of `aspect`; it saw the labels of the items whose texts it was fitted on."""
        fitted_on = set(KnownTexts.from_json(self.card["texts"]).calibration)
        seen = tuple(k for k, item in enumerate(golden.items) if text_digest(item) in fitted_on)
        own, where = self.card["task"]["aspect"], self.card["golden"]["name"]
        note = f"RepEval, {self.card['method']}, fitted on {own} of {where}. {self.metric.measures}"
        return replace(as_judge(self.metric, scores, aspect), name=self.name, kind="repeval", seen=seen, note=note)
