"""The endpoint file and prices: which host is sent what, what it costs, and what is told of a file of nonsense."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.errors import AuthError, ConsentError, UsageError
from core.judging.judge_specs import CAREFUL, SILENT, make_judge
from core.providers.cached import CachedProvider
from core.providers.endpoints import Installation, Price, RequestLimits, checked_base_url, list_price
from core.providers.openai_api import OpenAIProvider
from core.records import Usage
from core.settings import Settings
from tests.replies import MemoryReplies

SECRET = "sk-never-to-be-seen"
FILE = """
endpoints:
  https://models.example.org/v1:
    key: EXAMPLE_KEY
    headers:
      x-team: judges
      x-token: token $TEAM_TOKEN
    extra_body: {service_tier: flex}
    timeout: 300
    concurrency: 3
    requests_per_minute: 60
    prices:
      m: {prompt: 1, cached: 0.1, completion: 4}
  http://10.0.0.5:8000/v1: {}
"""
HOST, OPENAI = "https://models.example.org/v1", "https://api.openai.com/v1"
Here = Callable[..., Installation]


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("EXAMPLE_KEY", "TEAM_TOKEN"):
        monkeypatch.setenv(name, f"{SECRET}-{name.lower()}")


@pytest.fixture
def here(tmp_path: Path) -> Here:
    """The installation with a file in its home."""

    def made(text: str = FILE, **settings: Any) -> Installation:
        (tmp_path / "endpoints.yaml").write_text(text, encoding="utf-8")
        return Installation.of(Settings(home=tmp_path, **settings))

    return made


def test_without_a_file_all_is_as_the_environment_says(tmp_path: Path) -> None:
    plain = Installation.of(Settings(home=tmp_path, openai_api_key=SECRET, openai_base_url=HOST))
    for url in (HOST, OPENAI, "https://elsewhere.org/v1"):
        assert plain.key(url) == SECRET
        assert (plain.headers(url), plain.extra_body(url)) == ({}, {})
    assert plain.trusts(HOST)
    assert not plain.trusts("https://elsewhere.org/v1")
    assert plain.limits(HOST) == RequestLimits()


def test_a_host_is_sent_what_the_file_names_for_it(here: Here) -> None:
    installed = here(openai_api_key="sk-usual")
    assert installed.key(HOST) == f"{SECRET}-example_key"
    assert installed.headers(HOST) == {"x-team": "judges", "x-token": f"token {SECRET}-team_token"}
    assert installed.extra_body(HOST) == {"service_tier": "flex"}
    assert installed.limits(HOST) == RequestLimits(3, timeout=300.0, requests_per_minute=60)
    assert installed.key(f"{HOST}/inner") == "sk-usual", "another base URL"
    assert installed.key("http://10.0.0.5:8000/v1") is None, "the file names no key for it"
    assert SECRET not in repr(installed)


def test_a_key_that_the_file_gives_to_a_host_goes_nowhere_else(here: Here) -> None:
    bound = here(f"endpoints:\n  {HOST}: {{key: OPENAI_API_KEY}}\n", openai_api_key=SECRET)
    assert bound.key(HOST) == bound.key(OPENAI) == SECRET
    for url in ("https://elsewhere.org/v1", "http://127.0.0.1:8000/v1"):
        assert bound.key(url) is None


def test_a_variable_that_is_not_set_is_named(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TEAM_TOKEN")
    with pytest.raises(AuthError, match=r"uses the environment variable TEAM_TOKEN for https://models\.example\.org"):
        here().headers(HOST)
    monkeypatch.setenv("EXAMPLE_KEY", f"{SECRET}\nx-other: 1")
    with pytest.raises(UsageError, match="can't send the environment variable EXAMPLE_KEY in a header") as caught:
        here().key(HOST)
    assert SECRET not in str(caught.value)


def test_prices_of_the_endpoint_go_before_those_of_the_list(here: Here) -> None:
    installed = here()
    assert installed.price(HOST, "m") == Price(1.0, 4.0, 0.1)
    assert installed.price(OPENAI, "m") is None
    assert installed.price(OPENAI, "gpt-4o-mini") == Price(0.15, 0.6, 0.075)
    assert installed.price(HOST, "gpt-4o-mini") is None


def inner(judge: Any) -> OpenAIProvider:
    provider = judge.provider.inner if isinstance(judge.provider, CachedProvider) else judge.provider
    assert isinstance(provider, OpenAIProvider)
    return provider


def test_a_judge_is_made_with_what_the_file_says(here: Here) -> None:
    settings = here().settings
    judge: Any = make_judge(f"openai:m@{HOST}", settings, MemoryReplies(), gate=CAREFUL)
    provider = inner(judge)
    assert provider.limits == here().limits(HOST)
    assert provider.headers["x-token"] == f"token {SECRET}-team_token"
    assert judge.cost_of(1_000_000, 1_000_000) == 5.0
    assert judge.provider.endpoint == f'{HOST} with {{"service_tier": "flex"}}'
    for said in (judge.notice, str(judge.as_state()), repr(provider)):
        assert SECRET not in said
        assert "team" not in said
    closed: Any = make_judge(f"openai:m@{HOST}", settings, MemoryReplies(), gate=SILENT)
    assert closed.provider.endpoint == judge.provider.endpoint, "kept replies are found"
    with pytest.raises(ConsentError):
        closed.provider.inner.complete([None])


def test_where_keys_may_not_go_no_header_of_ours_goes_either(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Installation, "trusts", lambda _self, _url: False)
    provider = inner(make_judge(f"openai:m@{HOST}", here().settings, MemoryReplies(), gate=CAREFUL))
    assert not provider.headers
    assert provider.extra_body


ENTRY = f"endpoints:\n  {HOST}:\n    "


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("colour: blue", "colour: Extra inputs are not permitted"),
        (ENTRY + "colour: blue", "colour: Extra inputs are not permitted"),
        (ENTRY + f"key: {SECRET}", "key: must be the name of an environment variable"),
        (ENTRY + f"headers: {{Authorization: Bearer {SECRET}}}", "Authorization looks like a secret"),
        (ENTRY + f"headers: {{x-note: {SECRET}}}", "x-note looks like a secret"),
        (ENTRY + f'headers: {{x-note: "a\\r\\nx-key: {SECRET}"}}', "x-note must be plain ASCII on one line"),
        (ENTRY + f"extra_body: {{nested: [{{api_key: {SECRET}}}]}}", "must not contain a secret"),
        (ENTRY + "timeout: -1", "timeout: .*greater than 0"),
        (ENTRY + "concurrency: 0", "concurrency: .*greater than or equal to 1"),
        (f"endpoints:\n  https://user:{SECRET}@models.example.org/v1: {{}}", "endpoints: .*user name, a pass"),
        (f"endpoints:\n  https://models.example.org/v1?key={SECRET}: {{}}", "endpoints: "),
        (ENTRY + "prices: {m: {prompt: -1, completion: 2}}", "prices: m: prompt: .*equal to 0"),
        (ENTRY + "prices: {m: {prompt: .inf, completion: 2}}", "prices: m: "),
        (ENTRY + "prices: {m: {prompt: 1}}", "prices: m: completion: Field required"),
        ("endpoints: !!python/name:os.system x", "line 1: the file isn't valid YAML"),
        ("[" * 3000, "isn't valid YAML"),
        ("a: \x00", "isn't valid YAML"),
    ],
)
def test_nonsense_is_told_with_its_key_and_without_any_secret(here: Here, text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told) as caught:
        here(text)
    assert "endpoints.yaml" in str(caught.value)
    assert SECRET not in str(caught.value)


def test_the_example_of_the_readme_is_read(here: Here, repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = (repository / "core/providers/README.md").read_text("utf-8").split("```yaml\n", 1)[1].split("```", 1)[0]
    for name in ("EXAMPLE_API_KEY", "GATEWAY_TOKEN"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    installed = here(example)
    assert installed.file is not None
    for url in installed.file.endpoints:
        installed.key(url)
        installed.headers(url)
    assert installed.price(HOST, "judge-large") == Price(2.0, 8.0, 0.2)


@pytest.mark.parametrize(
    "url",
    [
        *("http://me:hunter2@host/v1", "https://hunter2@host/v1", "https://host/v1?key=hunter2", "ftp://hunter2"),
        *(
            "hunter2",
            "https://hunter2\\@evil/v1",
            "https://ho\u017ft/hunter2",
            "http://hunter2:99999/v1",
            "http://h..2/",
        ),
        *("http://[::hunter2]/v1", "http://host /hunter2", "http://ho%73t/hunter2", "http://-hunter2/v1"),
    ],
)
def test_a_base_url_with_a_secret_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        checked_base_url(url)
    assert "hunter2" not in str(caught.value)


ANTHROPIC = "https://api.anthropic.com/v1"


def test_a_list_price_holds_at_its_own_endpoint_and_for_dated_snapshots() -> None:
    assert list_price(OPENAI, "gpt-4o-mini-2024-07-18") == list_price(OPENAI, "gpt-4o-mini") is not None
    assert list_price(ANTHROPIC, "claude-haiku-4-5-20251001") == Price(1.0, 5.0, 0.1)
    assert list_price("http://127.0.0.1:8000/v1", "gpt-4o-mini") is None
    assert list_price(OPENAI, "a-model-of-tomorrow") is None


def test_cached_tokens_cost_less_and_never_more_than_there_are() -> None:
    price = Price(10.0, 50.0, cached=1.0)
    assert price.cost(1_000_000, 0, 790_000) == pytest.approx(0.21 * 10 + 0.79)
    assert price.cost(1_000_000, 0, 5_000_000) == pytest.approx(1.0)
    assert Price(10.0, 50.0).cost(1_000_000, 0, 790_000) == pytest.approx(10.0)


def test_a_sum_with_an_unknown_price_is_unknown() -> None:
    known, unknown, nothing = Usage(requests=1, cost=0.5), Usage(requests=1), Usage(cached=4)
    assert (known + known).cost == 1.0
    assert (known + unknown).cost is None
    assert (unknown + known + known).cost is None
    assert (nothing + known).cost == 0.5
    assert (Usage() + nothing).cost is None
