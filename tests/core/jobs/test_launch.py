"""The worker gets its settings whole, and is started only where the app starts workers."""

from __future__ import annotations

from pathlib import Path

from pydantic import TypeAdapter

from core.settings import Settings


def test_settings_reach_the_worker_whole(tmp_path: Path) -> None:
    settings = Settings(
        home=tmp_path,
        database_url="sqlite:///x",
        worker_id="w",
        ray="auto",
        concurrency=7,
        endpoints=tmp_path / "e.yaml",
        local_models=("a/b", "c/d"),
        roles={"ann@example.org": "annotator"},
        max_upload_mb=9,
        demo=True,
        openai_api_key="sk-secret",
        openai_base_url="http://127.0.0.1/v1",
    )
    assert TypeAdapter(Settings).validate_json(TypeAdapter(Settings).dump_json(settings)) == settings
