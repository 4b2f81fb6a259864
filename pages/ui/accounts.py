"""Whether people sign in: Streamlit's secrets hold a section `[auth]`, or nobody has an account."""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.errors import UsageError
from core.settings import Settings


def auth_section() -> Any:
    """What `[auth]` says (a mapping where it is written well), None without that section or readable secrets."""
    return st.secrets["auth"] if st.secrets.load_if_toml_exists() and "auth" in st.secrets else None


def check_accounts(settings: Settings) -> None:
    """UsageError where roles are given out and nobody can sign in: without accounts everybody is admin."""
    if settings.roles_file and auth_section() is None:
        raise UsageError(
            "CONCORD_ROLES gives people roles, but nobody can sign in: .streamlit/secrets.toml has no section [auth] "
            "that can be read, and without accounts everybody would be admin. Add that section (the README says how "
            "under A team), or unset CONCORD_ROLES to use Concord on this machine alone."
        )
