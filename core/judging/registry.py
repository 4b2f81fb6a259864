"""Judge specs and states → judges: the one place that knows every kind of judge.

=============================  =====================================================================================
`offline`                      the embedded judge: no key, no weights, no network
`openai:MODEL[@BASE_URL]`      any OpenAI-compatible endpoint; the key comes from OPENAI_API_KEY
`recorded:FILE`                replays a file of replies or scores, or a recording of a session with an endpoint
`scripted[:SEED]`              the stand-in for tests and demos
=============================  =====================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import AuthError, ConsentError, JudgeError, UsageError
from core.judging.base import Judge
from core.judging.gate import CAREFUL, Gate
from core.judging.llm import LLMJudge, Sampling
from core.judging.recorded import RecordedJudge
from core.judging.spec import JudgeSpec, parse_spec, shown
from core.providers.answered import with_cache
from core.providers.base import OnReply, Provider, Reply, ReplyStore, Request
from core.providers.endpoints import OPENAI_URL, checked_base_url
from core.providers.prices import Price, load_prices
from core.providers.recorded import RecordedProvider, read_recording
from core.providers.scripted import ScriptedProvider
from core.settings import Settings

_ROOT = Path(__file__).parents[2]


def make_judge(
    spec: str,
    settings: Settings,
    replies: ReplyStore | None = None,
    *,
    sampling: Sampling | None = None,
    gate: Gate = CAREFUL,
) -> Judge:
    """The judge that `spec` names (the table above), answering from `replies` first where it asks an endpoint.

    `gate` decides whether the endpoint may be asked, and who gets the key: `NAMED` where a person names this judge here
    and now.  UsageError for a malformed spec, AuthError when OpenAI's own endpoint is meant and there is no key,
    JudgeError for a file that the gate keeps shut.
    """
    parsed = parse_spec(spec)
    match parsed.kind:
        case "offline":
            from core.judging.offline.judge import OfflineJudge

            return OfflineJudge()
        case "openai":
            return _openai(parsed, settings, replies, sampling, gate)
        case "recorded":
            return _recorded(Path(parsed.file), sampling, gate)
        case "scripted":
            return _scripted(parsed.seed, replies, sampling)


def restore_judge(
    state: Mapping[str, Any], settings: Settings, replies: ReplyStore | None = None, *, gate: Gate = CAREFUL
) -> Judge:
    """The judge whose `as_state` was kept.  JudgeError for a damaged state, else as `make_judge`."""
    spec = state.get("spec")
    if not isinstance(spec, str):
        raise JudgeError("The kept judge has no 'spec': the judge file is damaged.")
    if spec == "offline":
        from core.judging.offline.judge import OfflineJudge

        return OfflineJudge.from_state(state)
    try:
        sampling = Sampling(**state["sampling"]) if "sampling" in state else None
    except TypeError as error:
        raise JudgeError(f"The kept judge {shown(spec)} has sampling settings this version does not know.") from error
    return make_judge(spec, settings, replies, sampling=sampling, gate=gate)


def endpoint_of(spec: JudgeSpec, settings: Settings) -> str:
    """The base URL that a judge of `spec` asks.  UsageError where it cannot be one."""
    return checked_base_url(spec.base_url or settings.openai_base_url or OPENAI_URL)


@dataclass(frozen=True)
class ClosedProvider:
    """Stands where an endpoint may not be asked: kept replies are found under its name, and nothing is ever sent."""

    endpoint: str
    why: ConsentError

    def complete(self, requests: Sequence[Request], *, on_reply: OnReply | None = None) -> list[Reply]:
        """ConsentError, unless there is nothing to ask."""
        if requests:
            raise ConsentError(str(self.why), self.endpoint)
        return []

    def close(self) -> None:
        """Nothing to release."""


def openai_provider(base_url: str, *, api_key: str | None, concurrency: int, prices: Mapping[str, Price]) -> Provider:
    """A provider for an OpenAI-compatible endpoint; the SDK is imported only here."""
    from core.providers.openai_api import OpenAIProvider

    return OpenAIProvider(base_url, api_key=api_key, concurrency=concurrency, prices=prices)


def _openai(
    spec: JudgeSpec, settings: Settings, replies: ReplyStore | None, sampling: Sampling | None, gate: Gate
) -> Judge:
    model, base_url = spec.model, endpoint_of(spec, settings)
    prices = load_prices(settings.prices)
    return LLMJudge(
        with_cache(_provider(model, base_url, settings, gate, prices), replies),
        model,
        spec=f"openai:{model}" if base_url == OPENAI_URL else f"openai:{model}@{base_url}",
        sampling=sampling,
        cost_of=prices[model].cost if model in prices else None,
    )


def _provider(model: str, base_url: str, settings: Settings, gate: Gate, prices: Mapping[str, Price]) -> Provider:
    """The one way to an endpoint: whatever judge wants to ask, the gate sees the URL that will be asked."""
    try:
        api_key = gate.key_for(base_url, settings)
    except ConsentError as error:
        return ClosedProvider(base_url, error)
    if base_url == OPENAI_URL and api_key is None:
        raise AuthError(
            f"The judge openai:{model} asks OpenAI's own endpoint, and there is no key.",
            hint="Set OPENAI_API_KEY, or name another endpoint: openai:MODEL@http://127.0.0.1:8000/v1.",
        )
    return openai_provider(base_url, api_key=api_key, concurrency=settings.concurrency, prices=prices)


def _recorded(path: Path, sampling: Sampling | None, gate: Gate) -> Judge:
    """What ships with Concord is named from its root, wherever the program was started."""
    file = path if path.is_file() or path.is_absolute() else _ROOT / path
    if not gate.files:
        file = (_ROOT / path).resolve()
        if not file.is_relative_to(_ROOT / "sample_data"):
            raise JudgeError(
                f"The judge recorded:{path} came with an imported project and names a file of this machine; it is not "
                "read. Bring the file in on Compare, or name it yourself on the command line."
            )
    if not file.is_file():
        raise UsageError(f"recorded: there is no file {path}.")
    if file.suffix != ".jsonl" or not _is_recording(file):
        return RecordedJudge.from_file(file)
    recording = read_recording(file)
    return LLMJudge(RecordedProvider(recording, path.name), recording.model, spec=f"recorded:{path}", sampling=sampling)


def _is_recording(path: Path) -> bool:
    with path.open(encoding="utf-8", errors="replace") as file:
        try:
            head = json.loads(file.readline())
        except ValueError:
            return False
    return isinstance(head, dict) and "endpoint" in head


def _scripted(seed: int, replies: ReplyStore | None, sampling: Sampling | None) -> Judge:
    return LLMJudge(
        with_cache(ScriptedProvider(seed), replies),
        "scripted",
        spec=f"scripted:{seed}" if seed else "scripted",
        sampling=sampling,
        cost_of=lambda _prompt, _completion: 0.0,
    )
