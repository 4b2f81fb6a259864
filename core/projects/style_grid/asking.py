"""The grid's questions put to a language model: one connection for all styles and aspects."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from core.errors import JudgeError, UsageError
from core.judging.base import OnProgress
from core.judging.llm import LLMJudge
from core.judging.registry import CAREFUL, Gate, make_judge
from core.judging.styles import Sampling, Style, sampling_of
from core.judging.verdicts import verdict_of
from core.progress import SILENT, Progress
from core.projects.style_grid.plan import Asked, StepsAnswer
from core.providers.base import Completion, Provider, Reply, ReplyStore, Request
from core.records import Criteria, FloatArray, GoldenSet, Item, Scored, Task
from core.settings import Settings

OnReply = Callable[[int, Reply], None]


def language_model(
    spec: str,
    settings: Settings,
    replies: ReplyStore | None = None,
    *,
    sampling: Sampling | None = None,
    gate: Gate = CAREFUL,
) -> LLMJudge:
    """The judge of `spec`, if it can be asked in styles.  UsageError for one that is no language model."""
    judge = make_judge(spec, settings, replies, sampling=sampling, gate=gate)
    if isinstance(judge, LLMJudge):
        return judge
    judge.close()
    kind = "offline judge is no language model" if spec == "offline" else "file holds no language model to ask"
    raise UsageError(
        f"The {kind}: there are no styles to ask it in. Choose an endpoint (openai:MODEL@BASE_URL), or scripted, the "
        "stand-in for demonstrations."
    )


class Asker:
    """Answers a grid's questions with `model`; close it when done."""

    def __init__(self, golden: GoldenSet, model: LLMJudge) -> None:
        self.golden, self.model = golden, model

    @property
    def notes(self) -> tuple[str, ...]:
        """What a stand-in has to say of itself; nothing for a model."""
        return () if self.model.is_llm else (self.model.notice,)

    def steps(self, task: Task, criteria: Criteria) -> StepsAnswer:
        """The evaluation steps that the model writes."""
        written = self.model.write_steps(task, criteria.text)
        return StepsAnswer(written.text, written.problem, usage=written.usage)

    def scores(
        self, task: Task, criteria: Criteria, style: Style, positions: Sequence[int], progress: Progress = SILENT
    ) -> Asked:
        """Every sample of the items at `positions`; `progress` counts replies."""
        items = [self.golden.items[position] for position in positions]
        judged = [k for k, item in enumerate(items) if item.target.strip()]
        tap = _Tap(self.model.provider, progress.advance, len(judged) * style.samples)
        judge = LLMJudge(tap, self.model.model, spec=self.model.spec, sampling=sampling_of(style))
        matrix = judge.score(task, items, [criteria])
        if len(tap.replies) != len(judged) * style.samples:
            raise JudgeError(f"{len(tap.replies)} replies came for {len(judged)} items in the style {style.name}.")
        own = {k: tap.replies[n * style.samples : (n + 1) * style.samples] for n, k in enumerate(judged)}
        samples = np.full((len(items), style.samples), np.nan)
        for k, replies in own.items():
            samples[k] = _values(items[k], replies, task, style)
        return Asked(
            values=matrix.values[0],
            samples=samples,
            unscored=matrix.unscored.get(criteria.criteria_id, ()),
            replies={
                items[k].item_id: tuple(reply.text for reply in replies if isinstance(reply, Completion))
                for k, replies in own.items()
            },
            calls=len(tap.replies),
            n_unread=int(np.isnan(samples[judged]).sum()),
            n_unweighted=judge.n_unweighted,
            usage=matrix.usage,
        )

    def close(self) -> None:
        """Release the connection."""
        self.model.close()


def _values(item: Item, replies: Sequence[Reply], task: Task, style: Style) -> FloatArray:
    """(n_samples,) what each reply says by itself, NaN where it holds no verdict."""
    verdicts = [verdict_of(item.item_id, [reply], task, weighted=style.weighted) for reply in replies]
    return np.array([one.value if isinstance(one, Scored) else np.nan for one in verdicts])


class _Tap:
    """A provider that keeps the replies that pass, in the order of their requests, and counts them as they come."""

    def __init__(self, inner: Provider, on_progress: OnProgress, expected: int) -> None:
        self.inner = inner
        self.replies: list[Reply] = []
        self._on_progress, self._expected = on_progress, expected
        self._arrived = 0

    @property
    def endpoint(self) -> str:
        return self.inner.endpoint

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        def arrived(index: int, reply: Reply) -> None:
            self._arrived += 1
            self._on_progress(self._arrived, self._expected)
            if on_reply is not None:
                on_reply(index, reply)

        found = self.inner.complete(requests, on_reply=arrived)
        self.replies += found
        return found

    def close(self) -> None:
        """The connection is the asker's."""
