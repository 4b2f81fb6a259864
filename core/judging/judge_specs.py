"""Create judges from specs or stored states, and decide which endpoints get the API key.

=============================  =====================================================================================
`offline`                      the embedded judge: no key, no weights, no network
`openai:MODEL[@BASE_URL]`      any OpenAI-compatible endpoint; the key comes from OPENAI_API_KEY
`hf:ID_OR_PATH[@REVISION]`     a causal language model in this process: a Hugging Face id or a folder (safetensors)
`recorded:FILE`                replays a file of replies or scores, or a recording of a session with an endpoint
`scripted[:SEED]`              the stand-in for tests and demos
`scripted:newsroom`            the simulated reader of the demo's notifications
=============================  =====================================================================================

A judge named by a user in a command, form or call gets the API key. A judge named only in a file gets the key only if
this installation trusts the endpoint. By default, a spec is treated as coming from a file (`Gate.CAREFUL`).

A file of `recorded:FILE` can be published responses or results of another tool. Its columns are `item_id` and either
`responses` (replies) or `score` (a number, empty for unscored), or common aliases. The recorded judge finds the score
of an item by its id, whatever the criteria, and cannot draft criteria.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any, Literal, Self

from core.data.judge_results import (
    ResultRow,
    open_results,
    out_of_range,
    propose_columns,
    readings_of,
    rows_of,
    score_in,
    verdict_of,
)
from core.errors import AuthError, BadReplyError, ConsentError, GoldenError, JudgeError, UsageError
from core.judging.judge_protocol import NO_TEXT, DraftBatch, DraftRequest, Judge, OnProgress, has_texts
from core.judging.llm_judge import LLMJudge
from core.judging.scoring_styles import Asking, Style
from core.providers import simulated_reader
from core.providers.cached import RecordedProvider, with_cache
from core.providers.completions import ClosedProvider, Failure, Message, Provider, ReplyStore, Request
from core.providers.endpoints import OPENAI_URL, Installation, checked_base_url, endpoint_name, trusted_with_the_key
from core.providers.scripted import ScriptedProvider
from core.providers.wire import ROOM_TO_THINK
from core.records import Criteria, Item, Task, Unscored, Usage, Verdict
from core.settings import Settings
from core.verdicts import Scores


class RecordedJudge(Judge):
    """A judge that replays the file at `path`. `recorded` maps item id to its rows (see `from_file`)."""

    is_llm = False

    def __init__(self, path: Path, recorded: Mapping[str, Sequence[ResultRow]]) -> None:
        self.path = path
        self.recorded = recorded

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Read the whole file. Raises UsageError, which names the row, if a row is unusable."""
        rows: dict[str, list[ResultRow]] = {}
        try:
            results = open_results(path)
            for row in rows_of(results, propose_columns(results)):
                if row.replies is None and (detail := score_in(row.score, pairs=True).detail):
                    raise GoldenError(f"{detail} A score must be a number or empty.", file=path.name, row=row.row)
                rows.setdefault(row.item_id, []).append(row)
        except GoldenError as error:
            raise UsageError(str(error)) from error
        return cls(path, rows)

    @property
    def spec(self) -> str:
        return f"recorded:{self.path}"

    @property
    def notice(self) -> str:
        return f"This judge replays the scores in {self.path.name}. Criteria don't change these scores."

    def score(
        self,
        task: Task,
        items: Sequence[Item],
        criteria: Sequence[Criteria],
        *,
        explain: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Scores:
        """Return the recorded scores, whatever the criteria. Items that are not in the file are unscored."""
        verdicts = [self._verdict(task, item) for item in items]
        calls = len(items) * len(criteria)
        if on_progress is not None:
            on_progress(calls, calls)
        return Scores.of(items, criteria, [verdicts] * len(criteria), Usage(cached=calls), explain=explain)

    def draft(self, task: Task, requests: Sequence[DraftRequest]) -> DraftBatch:
        """Raise JudgeError, because a recording cannot write criteria."""
        raise JudgeError(
            f"A recorded judge ({self.path.name}) replays scores and can't write criteria. Calibrate another "
            "judge (offline or openai:MODEL), and compare it with the recorded judge."
        )

    def _verdict(self, task: Task, item: Item) -> Verdict:
        """Return the mean of the readable replies or scores of an item."""
        if not has_texts(task, item):
            return Unscored(item.item_id, "missing input", NO_TEXT)
        rows = self.recorded.get(item.item_id)
        if rows is None:
            return Unscored(item.item_id, "missing input", f"{self.path.name} has no row for this item.")
        read = [reading for row in rows for reading in readings_of(row, task)]
        on_scale = [
            out_of_range(one.value, task.scale) if one.value is not None and not task.scale.holds(one.value) else one
            for one in read
        ]
        return verdict_of(rows, on_scale)


# ── specs ─────────────────────────────────────────────────────────────────────────────────────────

Kind = Literal["offline", "openai", "hf", "recorded", "scripted"]
FORMS = (
    "offline openai:MODEL openai:MODEL@BASE_URL hf:ID_OR_PATH hf:ID@REVISION recorded:FILE scripted scripted:SEED"
).split()
NEWSROOM = "newsroom"
_OPENAI = re.compile(
    r"(?is)(?:(?P<named>(?:(?!@http).)+)@(?P<url>https?://(?:(?!@http).)+)|(?P<model>(?!@http).[^@]*))"
)
_HF = re.compile(r"(?P<model>[^@]+|[./~\\].*?)(?:@(?P<revision>[\w.-]+))?")


@dataclass(frozen=True, slots=True)
class JudgeSpec:
    """A parsed judge spec.

    Attributes:
        model: Name of the model. For a recorded judge, the file; for a scripted judge, the seed or script.
        base_url: URL of the endpoint, not validated; "" is the default endpoint of this installation.
        revision: Branch, tag or commit of a local model; "" for the main branch.
    """

    kind: Kind
    model: str = ""
    base_url: str = ""
    revision: str = ""


def parse_spec(spec: str) -> JudgeSpec:
    """Parse a judge spec. Raises UsageError for an unknown form; the message never repeats a possible secret."""
    kind, separator, rest = spec.strip().partition(":")
    if kind == "offline" and not separator:
        return JudgeSpec("offline")
    # at most one "@http": with two, part of the model's name could be taken for the endpoint
    if kind == "openai" and (asked := _OPENAI.fullmatch(rest)):
        return JudgeSpec("openai", asked["named"] or asked["model"], asked["url"] or "")
    if kind == "hf" and (local := _HF.fullmatch(rest)):
        return JudgeSpec("hf", local["model"], revision=local["revision"] or "")
    if kind == "recorded" and rest:
        return JudgeSpec("recorded", rest)
    if kind == "scripted" and (rest == NEWSROOM or rest.isdecimal() or not separator):
        return JudgeSpec("scripted", rest)
    raise UsageError(f"Unknown judge {shown(spec)}. Use one of: {', '.join(FORMS)}.")


def shown(spec: str) -> str:
    """Shorten a spec for a message, and drop the part that may hold a secret."""
    return repr(spec.split("@", 1)[0][:80])


# ── permission to ask a judge and send the key ───────────────────────────────────────────────────────────────


class Gate(Enum):
    """Permission to ask a judge and to send it the key. It depends on where the judge's spec comes from."""

    NAMED = "the user named this judge in a command, a form or Python code"
    CAREFUL = "the spec comes from a file"
    SILENT = "the user is looking at stored results, so nothing is sent"
    IMPORTED = "the user is looking at an imported project: nothing is sent, and only Concord's own files are read"

    def key_goes(self, base_url: str, settings: Settings) -> bool:
        """Return whether requests to `base_url` include the key. Raises ConsentError if no request may be sent."""
        if self in (Gate.SILENT, Gate.IMPORTED):
            raise ConsentError(_NOT_SHOWN.format(base_url), base_url)
        return self is Gate.NAMED or Installation.of(settings).trusts(base_url)

    def may_run(self, names: Sequence[str], settings: Settings) -> bool:
        """Return whether a model, known under any of `names`, may be loaded from a folder or downloaded."""
        listed = any(name in settings.local_models for name in names)
        return self is Gate.NAMED or (self is Gate.CAREFUL and listed)


NAMED, CAREFUL, SILENT, IMPORTED = Gate


def endpoint_of_file(base_url: str) -> tuple[str, bool]:
    """Return the base URL from a file, normalised, and whether every installation may send the key to it.

    "" is OpenAI's own endpoint and stays "". Raises UsageError if the text is not a base URL.
    """
    return (checked_base_url(base_url), trusted_with_the_key(base_url, None)) if base_url else ("", True)


_NOT_SHOWN = "This reply from {0} isn't cached here, and viewing results sends no requests."
_STAYS_OUT = "{0} is named only in the judge file, so Concord didn't load it. Nothing was read or downloaded. "
_LIST_IT = "allow it for this installation: CONCORD_LOCAL_MODELS={name}"
NOT_RUN = f"The judge {_STAYS_OUT}If you trust that model, name it yourself (--judge {{0}}), or {_LIST_IT}"
PART_NOT_RUN = f"The model {_STAYS_OUT}If you trust it, {_LIST_IT}"  # a fused judge takes no --judge


# ── the judges ───────────────────────────────────────────────────────────────────────────────────────────────

_ROOT = Path(__file__).parents[2]


def make_judge(
    spec: str,
    settings: Settings,
    replies: ReplyStore | None = None,
    *,
    sampling: Style | None = None,
    asking: Asking | None = None,
    gate: Gate = CAREFUL,
) -> Judge:
    """Create the judge that `spec` names.

    Args:
        spec: For example "offline" or "openai:MODEL"; the module's docstring lists all forms.
        replies: Reply cache for endpoints.
        sampling: The judge's complete style, including prompts; replaces `asking.style`.
        asking: Options that a user chose; unset ones keep their defaults.
        gate: `NAMED` if the user named the judge in a command, form or call.

    Raises:
        UsageError: The spec is malformed, or the options don't apply to the judge.
        AuthError: OpenAI's own endpoint needs a key, and none is set.
        JudgeError: The gate refuses the file or the model.
    """
    parsed = parse_spec(spec)
    asking = asking or Asking()
    sampling = sampling or asking.within(settings.max_tokens)
    asking.require_for(parsed.kind)
    match parsed.kind:
        case "offline":
            from core.judging.offline.judge import OfflineJudge

            return OfflineJudge()
        case "openai":
            return _openai(parsed, settings, replies, sampling, gate=gate, asking=asking)
        case "hf":
            return _local(parsed, settings, replies, sampling, gate)
        case "recorded":
            judge = _recorded(Path(parsed.model), sampling, gate)
            if asking != Asking() and not isinstance(judge, LLMJudge):
                raise UsageError(
                    f"The judge {spec} replays scores, so form, samples and similar options don't apply. Remove them."
                )
            return judge
        case "scripted":
            seed = "" if parsed.model == NEWSROOM else str(int(parsed.model or 0))
            provider = ScriptedProvider(int(seed)) if seed else ScriptedProvider(NEWSROOM, simulated_reader.reply_to)
            return LLMJudge(
                with_cache(provider, replies),
                "scripted" if seed else NEWSROOM,
                spec="scripted" if seed == "0" else f"scripted:{seed or NEWSROOM}",
                sampling=sampling,
                cost_of=lambda _prompt, _completion: 0.0,
            )


def restore_judge(
    state: Mapping[str, Any], settings: Settings, replies: ReplyStore | None = None, *, gate: Gate = CAREFUL
) -> Judge:
    """Restore a judge from its stored state.

    Raises JudgeError if the state is damaged, and the same errors as `make_judge`.
    """
    spec = state.get("spec")
    if not isinstance(spec, str):
        raise JudgeError("The stored judge is damaged, because it has no 'spec'. Export the judge again.")
    if spec == "offline":
        from core.judging.offline.judge import OfflineJudge

        return OfflineJudge.from_state(state)
    try:
        sampling = Style.from_state(state.get("sampling", {}))
        asking = Asking.from_state(state, named=gate is NAMED)
    except UsageError as error:
        raise JudgeError(f"The stored judge {shown(spec)}: {error}") from error
    then = replace(settings, reasoning_effort="")
    if isinstance(judge := make_judge(spec, then, replies, sampling=sampling, asking=asking, gate=gate), LLMJudge):
        judge.room = min(int(state.get("room", 0)), ROOM_TO_THINK[-1])
    return judge


def other_judge(state: Mapping[str, Any], spec: str, settings: Settings, replies: ReplyStore | None = None) -> Judge:
    """Create the judge `spec`, which the user named, with the style of a stored judge.

    Raises the same errors as `restore_judge`.
    """
    if spec.strip() == state.get("spec"):
        return restore_judge(state, settings, replies, gate=NAMED)
    sampling = state.get("sampling")
    style = Style.from_state(sampling) if sampling else None
    return make_judge(spec, settings, replies, sampling=style, gate=NAMED)


def endpoint_of(spec: JudgeSpec, settings: Settings) -> str:
    """Return the base URL of a judge's endpoint. Raises UsageError if it is invalid."""
    return checked_base_url(spec.base_url or settings.openai_base_url or OPENAI_URL)


def _openai(
    spec: JudgeSpec,
    settings: Settings,
    replies: ReplyStore | None,
    sampling: Style | None,
    *,
    gate: Gate,
    asking: Asking,
) -> Judge:
    """Create a judge that uses an endpoint. The gate checks the URL that will be used."""
    model, base_url = spec.model, endpoint_of(spec, settings)
    here = Installation.of(settings)
    price, extra_body = here.price(base_url, model), here.extra_body(base_url)
    provider: Provider
    try:
        key_goes = gate.key_goes(base_url, settings)
    except ConsentError as error:
        provider = ClosedProvider(endpoint_name(base_url, extra_body), error)
    else:
        api_key = here.key(base_url) if key_goes else None
        headers = here.headers(base_url) if key_goes else {}
        if base_url == OPENAI_URL and api_key is None and not headers:
            raise AuthError(
                f"The judge openai:{model} uses OpenAI's own endpoint, but no key is set.",
                hint="Set OPENAI_API_KEY, or name another endpoint: openai:MODEL@http://127.0.0.1:8000/v1.",
            )
        from core.providers.openai_api import OpenAIProvider  # late, because it imports an HTTP client

        provider = OpenAIProvider(
            base_url,
            api_key=api_key,
            headers=headers,
            extra_body=extra_body,
            key_name=here.key_name(base_url),
            prices={model: price} if price else {},
            limits=here.limits(base_url),
        )
    return LLMJudge(
        with_cache(provider, replies),
        model,
        spec=f"openai:{model}" if base_url == OPENAI_URL else f"openai:{model}@{base_url}",
        sampling=sampling or (Style(max_tokens=settings.max_tokens) if settings.max_tokens else None),
        effort=asking.effort or settings.reasoning_effort,
        extra=asking.extra,
        cost_of=price.cost if price else None,
    )


def _local(
    spec: JudgeSpec, settings: Settings, replies: ReplyStore | None, sampling: Style | None, gate: Gate
) -> Judge:
    """Create a judge with a local model, if the gate allows it. The first request loads the model."""
    from core.judging.llm_judge import LocalJudge

    name = f"{spec.model}@{spec.revision}" if spec.revision else spec.model
    inner: Provider
    if gate.may_run((name,), settings):
        from core.providers.local_model import LocalProvider
        from core.repeval.model import ModelSpec

        inner = LocalProvider(ModelSpec(spec.model, spec.revision or None))
    else:
        words = NOT_RUN if gate is CAREFUL else _NOT_SHOWN
        inner = ClosedProvider(f"hf:{name}", ConsentError(words.format(f"hf:{name}", name=name), f"hf:{name}"))
    return LocalJudge(with_cache(inner, replies), spec.model, spec=f"hf:{name}", sampling=sampling)


def _recorded(path: Path, sampling: Style | None, gate: Gate) -> Judge:
    """Create a judge that replays a file. Files that ship with Concord have paths relative to its root."""
    file = path if path.is_file() or path.is_absolute() else _ROOT / path
    if gate is IMPORTED:
        file = (_ROOT / path).resolve()
        if not file.is_relative_to(_ROOT / "sample_data"):
            raise JudgeError(
                f"Concord didn't read the file of the recorded judge {path}, because the judge came with an imported "
                "project. Import the file on the Compare page, or name the judge on the command line."
            )
    if not file.is_file():
        raise UsageError(f"Concord can't find the file of the recorded judge: {path}. Check the path.")
    head: Any = None
    with file.open(encoding="utf-8", errors="replace") as opened, suppress(ValueError):
        head = json.loads(opened.readline()) if file.suffix == ".jsonl" else None
    if not isinstance(head, dict) or "endpoint" not in head:
        return RecordedJudge.from_file(file)
    recording = RecordedProvider(file)
    return LLMJudge(recording, recording.model, spec=f"recorded:{path}", sampling=sampling)


_CHECK_SECONDS = 30.0


def check_connection(judge: str, settings: Settings | None = None) -> str:
    """Test an endpoint with one tiny request; return a sentence that confirms the answer.

    The key comes from the environment. Nothing is stored, and a failure is not retried.

    Args:
        judge: ``"openai:MODEL"`` or ``"openai:MODEL@BASE_URL"``, named by the user.
        settings: None reads the settings from the environment.

    Raises:
        UsageError: `judge` has neither of these forms.
        ProviderError: The request failed. The message names the endpoint and says how to fix the problem.
    """
    from core.providers.openai_api import OpenAIProvider

    if parse_spec(judge).kind != "openai":
        raise UsageError("You can test the connection only for a model at an endpoint: openai:MODEL@BASE_URL.")
    with closing(language_model(judge, settings or Settings.from_environment(), gate=NAMED)) as model:
        provider = model.provider
        assert isinstance(provider, OpenAIProvider)
        seconds = min(provider.limits.timeout, _CHECK_SECONDS)
        provider.limits = replace(provider.limits, timeout=seconds, retries=0, patience=0.0)
        ask = Request(model.model, (Message("user", "Reply with the number 1."),), None, 64, extra=model.extra)
        began = time.perf_counter()
        (reply,) = provider.complete([replace(ask, effort=model.effort)])
        if isinstance(reply, Failure):
            raise BadReplyError(f"{provider.endpoint} (model {model.model!r}): {reply.message}")
        return f"{model.model} at {provider.endpoint} responds ({time.perf_counter() - began:.2f} s)."


def language_model(
    spec: str,
    settings: Settings,
    replies: ReplyStore | None = None,
    *,
    asking: Asking | None = None,
    gate: Gate = CAREFUL,
) -> LLMJudge:
    """Create a judge that asks a language model; the caller must close it. Raises UsageError for any other judge."""
    judge = make_judge(spec, settings, replies, asking=asking, gate=gate)
    if isinstance(judge, LLMJudge):
        return judge
    judge.close()
    raise UsageError(
        f"The judge {shown(spec)} isn't a language model. Choose an endpoint (openai:MODEL@BASE_URL), a model that "
        "runs in this process (hf:ID_OR_PATH), or scripted (the stand-in for demos)."
    )
