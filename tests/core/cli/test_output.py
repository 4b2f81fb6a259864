"""What a command says of how far it is where nobody looks at a terminal."""

import pytest
import typer
from rich.text import Text

from core.__main__ import app
from core.cli import output


def test_a_log_gets_a_line_every_half_minute(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 0.0
    monkeypatch.setattr(output.time, "monotonic", lambda: now)
    with output.progress_bar("items") as show:  # pytest's standard error is no terminal
        show("scoring", 20_000, 1_000_000)  # 20,000 are there from an earlier call: no part of the pace
        for now in (10.0, 29.0, 50.0, 60.0):
            show("scoring", 20_000 + 2_000 * now, 1_000_000)
        now = 100.0
        show("reading", 5_000, None)
    captured = capsys.readouterr()
    # 880,000 items are left at 2,000 a second: 440 s.  The next line is due at 80 s; then 5,000 is below the start.
    assert captured.err.splitlines() == [
        "scoring: 120,000 of 1,000,000 items, 2,000 items/s, 7 min 20 s left",
        "reading: 5,000 items",
    ]
    assert not captured.out


def test_help_keeps_what_stands_in_brackets() -> None:
    """A terminal takes `[@URL]` for markup and leaves it out: no help text holds what would be read so."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    texts = [command.help for command in commands.values()]
    texts += [getattr(option, "help", "") for command in commands.values() for option in command.params]
    told = [text for text in texts if text]
    assert len(told) > 200
    assert [text for text in told if Text.from_markup(text).plain != text] == []


def test_a_long_name_keeps_apart_from_its_number() -> None:
    row = {"value": 0.073, "interval": None, "n": 144, "n_unscored": 0, "reason": None}
    assert output.alignment_line("relevance, in the same calls", row) == "  relevance, in the same calls 0.073, n = 144"
    assert output.alignment_line("offline", row) == f"  offline{' ' * 21}0.073, n = 144"
