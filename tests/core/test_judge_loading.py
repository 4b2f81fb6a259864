"""Judge files → judges: what is said with every verdict, who gets the key, and that no file does harm."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core import load_judge
from core.errors import AuthError, ConcordError, ConsentError, GoldenError, JudgeError, UsageError
from core.judge_files.documents import parsed
from core.judge_files.fused_judge import require_metric_model
from core.judge_files.judge_writing import sealed
from core.judge_files.loaded import LoadedJudge
from core.records import Item, Scored, Unscored
from core.settings import Settings
from tests.fake_openai import RunningServer

Card = dict[str, Any]
FILES = Path(__file__).parent / "judge_files" / "files"
ITEM = Item("a", "The rye bread was recalled.", source="A bakery recalled its rye bread on Monday.")
OFFLINE = sealed(parsed((FILES / "judge_offline.yaml").read_text("utf-8"), "file"))
SCRIPTED = sealed(parsed((FILES / "judge_scripted.yaml").read_text("utf-8"), "file"))
FUSED = sealed(parsed((FILES / "fused.yaml").read_text("utf-8"), "file"))


def written(tmp_path: Path, card: Card, *, seal: bool = True) -> Path:
    path = tmp_path / "judge.yaml"
    path.write_text(json.dumps(sealed(card) if seal else card), encoding="utf-8")
    return path


def asking(spec: str) -> Card:
    """The card of the scripted judge, as if it had been calibrated with `spec`."""
    card = copy.deepcopy(SCRIPTED)
    card["judge"]["spec"] = spec
    return card


# ── what must be said ────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_that_was_edited_is_refused_unless_accepted_and_marked(tmp_path: Path) -> None:
    card = copy.deepcopy(OFFLINE)
    card["criteria"][0]["text"] += " Reward brevity."
    path = written(tmp_path, card, seal=False)
    with pytest.raises(JudgeError, match="digest doesn't match") as told:
        load_judge(path)
    assert "use --accept-edited on the command line or accept_edited=True in Python" in str(told.value)
    judge = load_judge(path, accept_edited=True)
    assert judge.marks == ("This judge's file was edited after its export, and the edit was accepted.",)
    assert isinstance(judge.score([ITEM])[0], Scored)


def test_another_judge_is_marked_once_and_asked_in_the_same_way(tmp_path: Path) -> None:
    card = copy.deepcopy(SCRIPTED)
    card["judge"]["sampling"] |= {"samples": 3, "temperature": 0.7, "steps": "1. Read.\n2. Rate."}
    judge = load_judge(written(tmp_path, card), judge="scripted:8")
    (mark,) = judge.marks
    assert mark.startswith("Scored by scripted:8 but calibrated with scripted:3, ")
    state = judge.judge.as_state()["sampling"]  # type: ignore[union-attr]
    assert (state["samples"], state["temperature"], state["steps"]) == (3, 0.7, "1. Read.\n2. Rate.")


# ── the key ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def keys_sent(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The keys that endpoints were to get; no request is made."""
    keys: list[str | None] = []

    def noted(url: str, *, api_key: str | None, **_: Any) -> Any:
        keys.append(api_key)
        raise JudgeError("far enough")

    monkeypatch.setenv("OPENAI_API_KEY", "the-key")
    monkeypatch.setattr("core.providers.openai_api.OpenAIProvider", noted)
    return keys


@pytest.mark.parametrize(
    ("spec", "base_url", "sent"),
    [
        ("openai:m", "", True),
        ("openai:m@https://api.openai.com/v2", "", True),
        ("openai:m@http://127.0.0.1:8000/v1", "", True),
        ("openai:m@http://localhost:8000/v1", "", True),
        ("openai:m@http://[::1]:8000/v1", "", True),
        ("openai:m@https://models.example.org/v1", "", False),
        ("openai:m@https://models.example.org/v1", "https://models.example.org/v1", True),
        ("openai:m@https://models.example.org:444/v1", "https://models.example.org/v1", False),
        ("openai:m@http://models.example.org/v1", "https://models.example.org/v1", False),
        ("openai:m@https://api.openai.com.example.org/v1", "", False),
        ("openai:@http://x@https://models.example.org/v1", "", False),
    ],
)
def test_a_file_cannot_send_the_key_where_it_likes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys_sent: list[str | None], spec: str, base_url: str, sent: bool
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", base_url)
    with pytest.raises(JudgeError):
        load_judge(written(tmp_path, asking(spec), seal=False), accept_edited=True)
    assert keys_sent in (["the-key"] if sent else [None], [] if not sent else None)


# ── an endpoint ──────────────────────────────────────────────────────────────────────────────────────────────────


class Kept:
    """A reply store in memory."""

    def __init__(self) -> None:
        self.replies: dict[str, str] = {}

    def get_replies(self, keys: Any) -> dict[str, str]:
        return {key: self.replies[key] for key in keys if key in self.replies}

    def put_replies(self, replies: Any) -> None:
        self.replies |= dict(replies)


@pytest.fixture
def kept() -> Kept:
    return Kept()


@pytest.fixture
def asked_judge(tmp_path: Path, server: RunningServer, kept: Kept) -> Iterator[LoadedJudge]:
    """A judge that asks the slow `server`, its replies in `kept`."""
    card = asking(f"openai:fake-judge@{server.base_url}")
    with closing(load_judge(written(tmp_path, card), replies=kept)) as judge:
        yield judge


def items(n: int) -> list[Item]:
    return [Item(f"i{k}", f"Text {k}.", source="A source.") for k in range(n)]


def test_an_endpoint_that_is_down_is_told_and_what_had_arrived_is_kept(
    asked_judge: LoadedJudge, server: RunningServer, kept: Kept
) -> None:
    asked_judge.score(items(1))
    server.fake.fault, server.fake.fault_after = "401", server.fake.requests + 10
    with pytest.raises(AuthError):
        asked_judge.score(items(30))
    assert len(kept.replies) > 1


# ── nonsense ─────────────────────────────────────────────────────────────────────────────────────────────────

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
nonsense = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 12)
    | st.integers(-(10**30), 10**30)
    | st.floats(-1e300, 1e300)
    | texts
    | st.sampled_from(["offline", "scripted", "mean", "stars", "score_only", "single", "data_text", "references"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values inside."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, key)
            yield from places(inner, (*path, key))


@st.composite
def spoilt(draw: st.DrawFn, card: Card) -> Card:
    """`card` after one to three nonsensical edits."""
    result = copy.deepcopy(card)
    for _ in range(draw(st.integers(1, 3))):
        # by depth first, so that the few values that matter are not lost among hundreds of numbers
        paths = sorted(places(result), key=len)
        if not paths:
            break
        depth = draw(st.integers(1, len(paths[-1])))
        path = draw(st.sampled_from([one for one in paths if len(one) == depth]))
        holder: Any = result
        for part in path[:-1]:
            holder = holder[part]
        match draw(st.sampled_from(["replace", "remove", "repeat"])):
            case "remove":
                del holder[path[-1]]
            case "repeat" if isinstance(holder, list):
                holder.append(holder[path[-1]])
            case _:
                holder[path[-1]] = draw(nonsense)
    return result


def loads_or_tells(path: Path) -> None:
    """JudgeError or a judge that scores; nothing else, and never a number off the rails."""
    try:
        judge = load_judge(path, accept_edited=True)
    except JudgeError as error:
        assert len(str(error)) < 3000
        return
    try:
        verdict = judge.score([ITEM])[0]
    except ConcordError as error:
        assert isinstance(error, JudgeError | GoldenError | UsageError)
        return
    finally:
        judge.close()
    assert isinstance(verdict, Unscored) or abs(verdict.value) < 1e12


quick = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("name", ["offline", "scripted", "fused"])
def test_nonsense_is_told_and_never_crashes(tmp_path: Path, name: str) -> None:
    card = {"offline": OFFLINE, "scripted": SCRIPTED, "fused": FUSED}[name]

    @quick
    @given(edited=spoilt(card))
    def check(edited: Card) -> None:
        loads_or_tells(written(tmp_path, edited, seal=False))

    check()


@pytest.mark.parametrize("name", ["nli:/no/model", "likelihood:org/model", "bertscore:org/model@5"])
def test_a_metric_in_a_file_brings_no_model_unless_the_installation_lists_it(name: str) -> None:
    model = name.partition(":")[2]
    with pytest.raises(ConsentError, match=r"Nothing was read or downloaded.*CONCORD_LOCAL_MODELS"):
        require_metric_model(name, Settings())
    require_metric_model(name, Settings(local_models=(model.partition("@")[0],)))
    for own in ("overlap", "metric_x", "bertscore:minilm"):
        require_metric_model(own, Settings())


def test_a_fused_judge_asks_leave_for_the_models_of_its_metrics(tmp_path: Path) -> None:
    part = FUSED["parts"][0] | {"assistant": "nli:org/model"}
    for own in ("judge", "repeval", "column"):
        part.pop(own, None)
    judge = load_judge(written(tmp_path, {**FUSED, "parts": [part, *FUSED["parts"][1:]]}))
    judge.score([Item("a", "A text.", source="A source.")])
    assert any("The model org/model is named only in the judge file" in mark for mark in judge.marks)
