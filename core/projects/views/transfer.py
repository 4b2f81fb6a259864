"""A project on its way out or in, as screens and the command line tell of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from core.kept import ProjectSummary


@dataclass(frozen=True, slots=True)
class Holdings:
    """How much of each kind a project's file holds; `replies` None where they were left out."""

    goldens: int
    items: int
    runs: int
    criteria: int
    judges: int
    labels: int
    log: int
    replies: int | None

    @property
    def words(self) -> str:
        """In one line, for people."""
        told = [
            _count(self.goldens, "golden set") + f" with {_count(self.items, 'item')}",
            _count(self.runs, "run"),
            f"{self.criteria:,} criteria",
            _count(self.judges, "judge"),
            _count(self.labels, "label"),
            _count(self.log, "entry", "entries") + " in the log",
            "no replies" if self.replies is None else _count(self.replies, "reply", "replies"),
        ]
        return ", ".join(told)


def _count(n: int, one: str, several: str = "") -> str:
    return f"{n:,} {one if n == 1 else several or one + 's'}"


@dataclass(frozen=True, slots=True)
class Exported:
    """A file that was written: its size in bytes, the digest of its content, and what could not come along.

    `unfinished` runs were queued or running and leave as cancelled; `replies_without_run` counts replies of this
    installation that no run is noted for (asked on the command line, or before runs were noted), which stay here.
    """

    project: str
    size: int
    digest: str
    holds: Holdings
    unfinished: int
    replies_without_run: int


@dataclass(frozen=True, slots=True)
class NamedEndpoint:
    """An endpoint (base URL) that something in a project's file asks, with the models asked there."""

    endpoint: str
    models: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Arriving:
    """What a project's file says and holds, all of it checked, before anything is made of it.

    `endpoints` are all endpoints that occur in it, with the models asked there ("" is this installation's usual one):
    nothing is sent to any of them before a person here allows it.  `files` are files of this machine that its judges
    name, which are not read, `models` what its RepEval runs and metrics load.
    """

    project: str
    exported: str
    concord: str
    size: int
    digest: str
    holds: Holdings
    golden_names: tuple[str, ...]
    endpoints: tuple[NamedEndpoint, ...]
    files: tuple[str, ...]
    models: tuple[str, ...]
    people: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Imported:
    """A project that came in; `renamed` says that its name was taken, `runs_renamed` how many runs have a new id."""

    project: ProjectSummary
    holds: Holdings
    renamed: bool
    runs_renamed: int
    digest: str = field(default="")
    endpoints: tuple[NamedEndpoint, ...] = ()

    @property
    def project_id(self) -> str:
        return self.project.project_id
