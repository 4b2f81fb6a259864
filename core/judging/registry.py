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
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.errors import AuthError, JudgeError, UsageError
from core.judging.base import Judge
from core.judging.llm import LLMJudge, Sampling
from core.judging.recorded import RecordedJudge
from core.providers.base import ReplyStore
from core.providers.prices import load_prices
from core.providers.recorded import RecordedProvider, read_recording
from core.providers.registry import OPENAI_URL, checked_base_url, openai_provider, with_cache
from core.providers.scripted import ScriptedProvider
from core.settings import Settings

_ROOT = Path(__file__).parents[2]
FORMS = ("offline", "openai:MODEL", "openai:MODEL@BASE_URL", "recorded:FILE", "scripted", "scripted:SEED")


def make_judge(
    spec: str, settings: Settings, replies: ReplyStore | None = None, *, sampling: Sampling | None = None
) -> Judge:
    """The judge that `spec` names (the table above), answering from `replies` first where it asks an endpoint.

    UsageError for a malformed spec, AuthError when OpenAI's own endpoint is meant and there is no key.
    """
    kind, separator, rest = spec.strip().partition(":")
    if kind == "offline" and not separator:
        from core.judging.offline.judge import OfflineJudge

        return OfflineJudge()
    if kind == "openai" and rest:
        return _openai(rest, settings, replies, sampling)
    if kind == "recorded" and rest:
        return _recorded(Path(rest), sampling)
    if kind == "scripted" and (rest.isdecimal() or not separator):
        return _scripted(int(rest or 0), replies, sampling)
    raise _bad_spec(f"The judge {_shown(spec)} is not of a known form.")


def restore_judge(state: Mapping[str, Any], settings: Settings, replies: ReplyStore | None = None) -> Judge:
    """The judge whose `as_state` was kept.  JudgeError for a damaged state, UsageError as `make_judge`."""
    spec = state.get("spec")
    if not isinstance(spec, str):
        raise JudgeError("The kept judge has no 'spec': the judge file is damaged.")
    if spec == "offline":
        from core.judging.offline.judge import OfflineJudge

        return OfflineJudge.from_state(state)
    try:
        sampling = Sampling(**state["sampling"]) if "sampling" in state else None
    except TypeError as error:
        raise JudgeError(f"The kept judge {_shown(spec)} has sampling settings this version does not know.") from error
    return make_judge(spec, settings, replies, sampling=sampling)


def _openai(rest: str, settings: Settings, replies: ReplyStore | None, sampling: Sampling | None) -> Judge:
    model, base_url = _model_and_url(rest)
    base_url = checked_base_url(base_url or settings.openai_base_url or OPENAI_URL)
    if base_url == OPENAI_URL and settings.openai_api_key is None:
        raise AuthError(
            f"The judge openai:{model} asks OpenAI's own endpoint, and there is no key.",
            hint="Set OPENAI_API_KEY, or name another endpoint: openai:MODEL@http://127.0.0.1:8000/v1.",
        )
    prices = load_prices(settings.prices)
    provider = openai_provider(
        base_url, api_key=settings.openai_api_key, concurrency=settings.concurrency, prices=prices
    )
    return LLMJudge(
        with_cache(provider, replies),
        model,
        spec=f"openai:{model}" if base_url == OPENAI_URL else f"openai:{model}@{base_url}",
        sampling=sampling,
        cost_of=prices[model].cost if model in prices else None,
    )


def _model_and_url(rest: str) -> tuple[str, str]:
    """("m", "http://…") of "m@http://…", ("m", "") of "m"; a model's name may itself start with "@"."""
    start = next((at for at in (rest.find("@http://"), rest.find("@https://")) if at > 0), -1)
    if start > 0:
        return rest[:start], rest[start + 1 :]
    if "@" in rest[1:]:
        raise _bad_spec("What follows the model's name and '@' must be a URL that starts with http:// or https://.")
    return rest, ""


def _recorded(path: Path, sampling: Sampling | None) -> Judge:
    """What ships with Concord is named from its root, wherever the program was started."""
    file = path if path.is_file() or path.is_absolute() else _ROOT / path
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
    provider = with_cache(ScriptedProvider(seed), replies)
    return LLMJudge(
        provider,
        "scripted",
        spec=f"scripted:{seed}" if seed else "scripted",
        sampling=sampling,
        cost_of=lambda _prompt, _completion: 0.0,
    )


def _bad_spec(what: str) -> UsageError:
    return UsageError(f"{what} Use one of: {', '.join(FORMS)}.")


def _shown(spec: str) -> str:
    """The spec for a message, without anything that might be a secret in a URL."""
    return repr(spec.split("@", 1)[0][:80])
