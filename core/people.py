"""Who does something, and what they may do.

Every change carries its author.  Local use knows no accounts: whoever sits at the machine may do everything, under the
name they give; at a screen nothing is changed before they gave one.  Where people sign in, their role comes from the
settings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Role = Literal["viewer", "annotator", "reviewer", "admin"]
ROLES: tuple[Role, ...] = ("viewer", "annotator", "reviewer", "admin")
"""From the least to the most: each may do what those before it may."""


@dataclass(frozen=True, slots=True)
class Actor:
    """Somebody who acts: `name` as others see it ("" = nobody said), `subject` the identity they signed in with.

    `at_screen`: they sit at a screen, where whoever changes something says who they are first.
    """

    name: str = ""
    role: Role = "admin"
    subject: str = ""
    at_screen: bool = False

    @property
    def is_unnamed(self) -> bool:
        """Whether somebody at a screen has yet to say who they are: they may read, and change nothing."""
        return self.at_screen and not self.name

    def may(self, role: Role) -> bool:
        """Whether this person's role is at least `role`."""
        return ROLES.index(self.role) >= ROLES.index(role)


LOCAL = Actor()
"""Whoever sits at the machine: the command line and the worker."""
