"""Check connection strings (anything that libpq takes), and show them without their secrets.

libpq reads a mistyped connection string in another way than intended: a part of the password
becomes the host, the port or the database. libpq's messages quote it, so Weir never passes them on.
"""

import re

import psycopg2
import psycopg2.extensions

from weir.errors import InvalidInput

_URL = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]*)://")
_SHOWN = ("service", "host", "port", "dbname", "user")
SECRET = ("password", "sslpassword", "scram_client_key", "scram_server_key", "oauth_client_secret")
_ENCODE = (
    "write @, /, : and % of a password as %40, %2F, %3A and %25, or keep it in a password file"
)


def check(dsn: str, setting: str) -> dict[str, str]:
    """Return the parts of a connection string. `setting`: where it comes from, for the error.

    Raises InvalidInput, without quoting anything of it, if libpq cannot read it, or would take what
    is probably a part of the password for something else.
    """
    url = _URL.match(dsn)
    if url and url[1] not in ("postgresql", "postgres"):
        raise InvalidInput(
            "setting_invalid",
            f"{setting} is not a Postgres URL; begin it with postgresql://.",
        )
    try:
        parts: dict[str, str] = psycopg2.extensions.parse_dsn(dsn)
    except psycopg2.Error:
        how = _ENCODE if url else "write it as service=name, key='value' pairs, or postgresql://"
        raise InvalidInput(
            "setting_invalid", f"{setting} can't be read as a connection string: {how}."
        ) from None
    user, at, rest = dsn[url.end() :].partition("@") if url else ("", "", "")
    if at and ("/" in user or "@" in rest):
        raise InvalidInput(
            "setting_invalid",
            f"{setting} is an ambiguous URL; {_ENCODE}.",
        )
    if not re.fullmatch(r"[0-9, ]*", parts.get("port", "")):
        raise InvalidInput("setting_invalid", f"the port of {setting} is not a number; {_ENCODE}.")
    return parts


def describe(dsn: str) -> str:
    """Return the parts of a connection string that are not secret; empty if it cannot be read."""
    try:
        parts = check(dsn, "")
    except InvalidInput:
        return ""
    return " ".join(f"{name}={parts[name]}" for name in _SHOWN if name in parts)


def masked(text: str, dsn: str) -> str:
    """Return the text with *** in place of the secrets of a connection string."""
    try:
        parts = check(dsn, "")
    except InvalidInput:
        return text.replace(dsn, "***")
    for secret in filter(None, map(parts.get, SECRET)):
        text = text.replace(secret, "***")
    return text
