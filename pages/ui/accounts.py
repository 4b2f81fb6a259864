"""Who may reach the app: whether people sign in (Streamlit's secrets hold `[auth]`), and which addresses are ours."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from typing import Any

import streamlit as st

from core.errors import UsageError
from core.settings import Settings


def auth_section() -> Any:
    """The section `[auth]` (a mapping where it is written well), None without it or without readable secrets."""
    return st.secrets["auth"] if st.secrets.load_if_toml_exists() and "auth" in st.secrets else None


def check_accounts(settings: Settings) -> None:
    """UsageError where roles are given out and nobody can sign in: without accounts everybody is admin."""
    if settings.roles_file and auth_section() is None:
        raise UsageError(
            "CONCORD_ROLES gives people roles, but nobody can sign in: .streamlit/secrets.toml has no section [auth] "
            "that can be read, and without accounts everybody would be admin. Add that section (the README says how "
            "under A team), or unset CONCORD_ROLES to use Concord on this machine alone."
        )


def is_loopback(address: str) -> bool:
    """Whether this text is an IP address of this machine itself, IPv4 within IPv6 included."""
    try:
        known = ip_address(address)
    except ValueError:
        return False
    return ((isinstance(known, IPv6Address) and known.ipv4_mapped) or known).is_loopback
