"""Sessions: what each is bound to, and what it has saved."""

from __future__ import annotations

from gitmem.http.answers import Answer
from gitmem.http.page.rendering import render, see
from gitmem.http.page.visit import Visit
from gitmem.sessions import Session


def sessions(visit: Visit) -> Answer:
    """A page of an environment's sessions."""
    page = visit.environment.sessions.list(cursor=visit.query.get("cursor"))
    return render(
        visit,
        "sessions.html",
        place=visit.place,
        sessions=[session.inspect() for session in page],
        next_cursor=page.next_cursor,
        is_first="cursor" not in visit.query,
    )


def session(visit: Visit) -> Answer:
    """A session with its bindings and its saves, the newest first."""
    found = _session(visit)
    return render(
        visit, "session.html", place=visit.place, session=found.inspect(), saves=list(reversed(found.events()))
    )


def end(visit: Visit) -> Answer:
    """End a session."""
    found = _session(visit)
    found.end()
    return see(f"{visit.place.session_url(found.id)}?done=ended")


def _session(visit: Visit) -> Session:
    return visit.environment.sessions.get(visit.path["session"])
