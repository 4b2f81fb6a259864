"""An LLM judge asked ahead by batch: its requests go to a batch endpoint or into files, the replies into the cache.

Afterwards the judge scores as always.  What a batch has answered it finds in the cache under the keys of its own
requests; what a batch has left it asks directly.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from core.errors import ConsentError, JobError, UsageError
from core.files import replacing, saving
from core.judging.base import Judge
from core.judging.llm import LLMJudge
from core.progress import Progress, Stage
from core.providers.base import Provider, ReplyStore, RunAnswers
from core.providers.batch_file import (
    HALF,
    Asked,
    BatchNotes,
    BatchOutcome,
    BatchReplies,
    Came,
    NotesStore,
    Part,
    PartFile,
    Rest,
    Unasked,
    Wait,
    Walk,
    read_results,
)
from core.providers.cached import CachedProvider
from core.providers.wire import Capabilities
from core.records import Criteria, Item, Task

if TYPE_CHECKING:
    from core.providers.openai_api import OpenAIProvider

__all__ = ["HALF", "BatchAsker", "BatchNotes", "NotesFile", "Rest", "require_batches", "sleeping"]
FORMAT = "concord-batches"


def require_batches(judge: Judge) -> LLMJudge:
    """The judge, if it asks an endpoint, which may have batches.  UsageError for any other."""
    if isinstance(judge, LLMJudge) and judge.spec.startswith("openai:"):
        return judge
    raise UsageError(
        f"The judge {judge.spec} asks no endpoint, and batches are for endpoints: name openai:MODEL[@BASE_URL], or "
        "leave out the batch."
    )


@dataclass(frozen=True)
class BatchAsker:
    """How a judge is asked by batch: `replies` keeps the answers, `notes_at` gives the place of notes by a name.

    `rest` says what becomes of requests that a batch ended without.
    """

    replies: ReplyStore
    notes_at: Callable[[str], NotesStore]
    wait: Wait
    rest: Rest = "batch"

    @cached_property
    def answers(self) -> RunAnswers:
        return self.replies if isinstance(self.replies, RunAnswers) else BatchReplies(self.replies)

    def ask(self, judge: Judge, walk: Walk, name: str = "") -> BatchOutcome:
        """Have all requests of `walk` answered by batch; notes go by `name`, or by what is asked.

        UsageError as `require_batches`; ProviderError as the endpoint fails; whatever `wait` raises.
        """
        from core.providers.batch import answer_by_batch

        llm = require_batches(judge)
        endpoint, asked = self._endpoint(llm), Asked(walk, llm.provider.endpoint, self.answers)
        notes = self.notes_at(name or _name(asked))
        return answer_by_batch(endpoint, asked, llm.model, notes, self.wait, rest=self.rest)

    def ask_scores(self, judge: Judge, task: Task, items: Sequence[Item], criteria: Sequence[Criteria]) -> BatchOutcome:
        """As `ask`, for the scores of `items` by each of the `criteria`."""
        llm = require_batches(judge)
        return self.ask(llm, lambda: llm.requests(task, items, criteria))

    def write(self, judge: Judge, walk: Walk, path: Path) -> tuple[list[Path], int]:
        """Write all requests without an answer into files in the batch form, `path` and others beside it.

        The files, and how many lines they have.  Nothing is asked; what the endpoint did not take when the judge was
        calibrated is left out.  UsageError for a place that cannot be written.
        """
        llm = require_batches(judge)
        known = Capabilities(set(llm.refused_before))  # nobody is asked, who could say it anew
        lines = (line for _, line in Asked(walk, llm.provider.endpoint, self.answers).lines(known))
        line, paths, n = next(lines, None), list[Path](), 0
        while line is not None:
            paths.append(path if not paths else path.with_name(f"{path.stem}-{len(paths) + 1}{path.suffix}"))
            with saving(paths[-1]) as place, place.open("wb") as file:
                part = PartFile(file)
                while line is not None and not part.full(line):
                    part.add(line)
                    line = next(lines, None)
            n += part.n
        return paths, n

    def read(self, judge: Judge, walk: Walk, paths: Iterable[Path]) -> Came:
        """Store the replies in files of results; the judge then asks nobody.

        UsageError for a file that cannot be read, JobError where no line answers any of the requests.
        """
        llm = require_batches(judge)
        inner = self._endpoint(llm)
        asked, came = Asked(walk, inner.endpoint, self.answers), Came()
        asked.look()
        for path in paths:
            with ExitStack() as opened:
                try:
                    file = opened.enter_context(path.open("rb"))
                except OSError as error:
                    raise UsageError(f"--batch-read: {path} cannot be read ({error.strerror}).") from error
                price, left_out = inner.prices.get(llm.model), sorted(llm.refused_before)
                read_results(file, asked, price, came=came, without=left_out, last=True)
        if not came.answered and (came.foreign or came.unusable):
            raise JobError(
                f"None of the {came.foreign + came.unusable:,} lines answers a request of this judge about these "
                "items: the results are of another judge, of other items, or of another endpoint. Score with the judge "
                "file, --judge and items that the requests were written with."
            )
        llm.provider = CachedProvider(Unasked(inner.endpoint), self.answers)
        return came

    def _endpoint(self, judge: LLMJudge) -> OpenAIProvider:
        """The judge's own endpoint; what it answers is kept in `answers` from now on."""
        from core.providers.openai_api import OpenAIProvider

        inner: Provider = judge.provider
        if isinstance(inner, CachedProvider):
            inner = inner.inner
        if not isinstance(inner, OpenAIProvider):
            raise ConsentError(str(getattr(inner, "why", f"{judge.spec} may not be asked here.")), inner.endpoint)
        judge.provider = CachedProvider(inner, self.answers)
        return inner


def _name(asked: Asked) -> str:
    """A digest of all that is asked for."""
    asked.look()
    sha = hashlib.sha256()
    for key in asked.samples:
        sha.update(key.encode())
    return sha.hexdigest()[:32]


def sleeping(progress: Progress) -> Wait:
    """Waits in this process, and says how far the batch is."""

    def wait(done: int, of: int, seconds: float) -> None:
        progress.publish(Stage("batch", "waiting for a batch", done, of))
        time.sleep(seconds)

    return wait


class NotesFile:
    """Notes in a JSON file.  `identity` says what they belong to: JobError for those of something else."""

    def __init__(self, path: Path, identity: object = None) -> None:
        self.path, self.identity = path, identity

    def load(self) -> BatchNotes | None:
        """As `NotesStore`.  JobError for a file that holds no notes."""
        try:
            body = json.loads(self.path.read_text("utf-8"))
            notes = body["notes"] if body["format"] == FORMAT else {}
            parts = tuple(Part(**part) for part in notes["parts"])
            loaded = BatchNotes(float(notes["begun"]), parts, tuple(notes["without"]), bool(notes["settled"]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise JobError(f"{self.path}: holds no notes of batches ({error}). Remove it to begin anew.") from error
        if body.get("identity") != self.identity:
            raise JobError(
                f"{self.path}: a batch is under way for another input, judge file or choice of options. Go on with "
                "those, give another --out, or add --again to leave that batch alone."
            )
        return loaded

    def save(self, notes: BatchNotes) -> None:
        """As `NotesStore`."""
        with replacing(self.path) as part:
            part.write_text(json.dumps({"format": FORMAT, "identity": self.identity, "notes": asdict(notes)}), "utf-8")

    def drop(self) -> None:
        """Forget them."""
        self.path.unlink(missing_ok=True)
