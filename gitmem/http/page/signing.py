"""Signing in to the page, and out of it."""

from __future__ import annotations

import os
from hashlib import sha256

from gitmem.errors import ForbiddenError, UnauthorizedError
from gitmem.http.answers import Answer, Headers
from gitmem.http.page.rendering import render, see
from gitmem.http.page.visit import Visit, local_target


def cookie_name(folder: str) -> str:
    """The cookie of the store in `folder`: several servers on one machine share a browser's cookies."""
    return f"gitmem-{sha256(os.fsencode(folder)).hexdigest()[:8]}"


def set_cookie(visit: Visit, token: str) -> Headers:
    """The header that gives a browser its token."""
    secure = "; Secure" if any(origin.startswith("https:") for origin in visit.headers.get("origin", ())) else ""
    value = f"{cookie_name(visit.serving.store.folder)}={token}; Path=/; HttpOnly; SameSite=Strict{secure}"
    return ((b"set-cookie", value.encode()),)


def show(visit: Visit) -> Answer:
    """The form to sign in, on its own."""
    return form(visit, 200, "/")


def form(visit: Visit, status: int, target: str, message: str = "") -> Answer:
    """The form to sign in, then to go on to `target`; what somebody has just typed is kept in sight."""
    kept = visit.form.get("text")
    return render(visit, "signin.html", status, target=local_target(target), message=message, kept=kept)


def enter(visit: Visit) -> Answer:
    """Sign in with an API key."""
    target = visit.form.get("target")
    try:
        key = visit.serving.keys.find(visit.form["key"].strip().encode())
    except UnauthorizedError as error:
        return form(visit, 401, target, error.message)
    token = visit.signins.begin(key.id)
    return see(local_target(target), set_cookie(visit, token))


def open_link(visit: Visit) -> Answer:
    """Sign in by a one-time link."""
    purpose = [*visit.headers.get("sec-purpose", ()), *visit.headers.get("purpose", ())]
    try:
        if any("prefetch" in line for line in purpose):
            raise ForbiddenError("The link works once: open it, and let nothing fetch it ahead.")
        token = visit.signins.redeem(visit.query.get("token", ""))
    except UnauthorizedError as error:
        return form(visit, 401, "/", error.message)
    return see("/", set_cookie(visit, token))


def leave(visit: Visit) -> Answer:
    """Sign out; the browser forgets the pages that it keeps, too."""
    visit.signins.end(visit.token)
    name = cookie_name(visit.serving.store.folder)
    gone = f"{name}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict".encode()
    return see("/sign-in", ((b"set-cookie", gone), (b"clear-site-data", b'"cache"')))
