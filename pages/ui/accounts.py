"""Check who can reach the app: Streamlit's `[auth]` secrets, roles, and local addresses."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address
from typing import Any

import streamlit as st

from core.errors import UsageError
from core.settings import Settings


def auth_section() -> Any:
    """Return the section `[auth]` of the secrets (a mapping if well-formed); None if it is missing or unreadable."""
    return st.secrets["auth"] if st.secrets.load_if_toml_exists() and "auth" in st.secrets else None


def check_accounts(settings: Settings) -> None:
    """Raise UsageError if roles are configured without sign-in, because everyone would be an admin."""
    if settings.roles_file and auth_section() is None:
        raise UsageError(
            "CONCORD_ROLES assigns roles, but no one can sign in, because .streamlit/secrets.toml has no readable "
            "[auth] section. Add that section (see “A team” in the README), or unset CONCORD_ROLES to use Concord "
            "only on this machine."
        )


def is_loopback(address: str) -> bool:
    """Return whether `address` is a loopback IP address, including IPv4 in IPv6."""
    try:
        known = ip_address(address)
    except ValueError:
        return False
    return ((isinstance(known, IPv6Address) and known.ipv4_mapped) or known).is_loopback
