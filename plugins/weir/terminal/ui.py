"""The command `weir ui`: the pages of Weir on this machine, without Airflow."""

import argparse
import hmac
import secrets
import socket
from typing import Annotated

from weir.installation.extras import naming_extras
from weir.terminal.look import Terminal
from weir.terminal.printing import note, print_json


def ui(terminal: Terminal, given: argparse.Namespace) -> int:
    """Show streams, reader groups and runs in a browser, on this machine only, until Ctrl-C.
    Whoever has the address that is printed may look."""
    with naming_extras():
        import uvicorn
        from fastapi import Depends, HTTPException
        from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

        from weir.pages.app import Access, create_app
    token = secrets.token_urlsafe(32)
    bearer = Depends(HTTPBearer(auto_error=False))

    def holder(shown: Annotated[HTTPAuthorizationCredentials | None, bearer]) -> None:
        if shown is None or not hmac.compare_digest(shown.credentials.encode(), token.encode()):
            raise HTTPException(401, "Open the address that `weir ui` has printed.")

    # The installation that the terminal is in, whatever is named.
    access = Access(lambda _: terminal.settings, holder, holder, holder, holder)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()  # whoever reads the address may be faster than the app
        # After # it is not sent to the server, and so in no log.
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/now#token={token}"
        if terminal.json:
            print_json({"address": address})
        else:
            note(f"open {address} (Ctrl-C ends it)")
        serving = uvicorn.Config(create_app(access), log_level="warning", access_log=False)
        uvicorn.Server(serving).run(sockets=[listening])
    return 0
