"""Whether anything was saved since a page was made, cheaply enough to be asked every few seconds."""

from __future__ import annotations

from gitmem.http.answers import Answer, as_json
from gitmem.http.page.visit import Visit


def tip(visit: Visit) -> Answer:
    """A word that changes with every save, and every session that starts or ends."""
    return as_json({"tip": tip_of(visit)})


def tip_of(visit: Visit) -> str:
    """That word, for the environment of the path."""
    project, environment = visit.project, visit.environment
    tips = [environment.parts().repository.tip() if environment.exists else None]
    snapshot = project.control.newest()
    tips.append(snapshot.tip if snapshot is not None else None)
    return "-".join(found.hex()[:16] if found is not None else "" for found in tips)
