"""Clones of one memory, each a store of its own, that meet at a hub."""

from __future__ import annotations

from pathlib import Path

import gitmem
from gitmem.git.remotes import Remote
from tests.support import git
from tests.workshop import NOTES


class Machine:
    """A store with project "bot", and its development environment. `hub` is its remote "origin"."""

    def __init__(
        self,
        folder: Path,
        hub: str,
        *,
        upstream: bool = False,
        offline: bool = False,
        settings: gitmem.Settings | None = None,
    ) -> None:
        self.folder = folder
        self.store = gitmem.open_store(folder, create=True, settings=settings or gitmem.Settings())
        self.environment = self.store.project("bot").create().environment("development")
        self.remote: Remote = self.environment.remotes.add("origin", hub, upstream=upstream, offline=offline)

    @property
    def notes(self) -> gitmem.Documents:
        return self.environment.documents("notes")

    @property
    def tree(self) -> Path:
        return Path(self.environment.folder)

    @property
    def tip(self) -> str:
        return git(self.tree, "rev-parse", "main")

    def revisions(self) -> dict[str, str]:
        """The revision of every live document."""
        found: dict[str, str] = {}
        cursor: str | None = None
        while True:
            page = self.notes.list(cursor=cursor)
            found |= {document.id: document.revision for document in page.documents}
            cursor = page.next_cursor
            if cursor is None:
                return found

    def texts(self) -> dict[str, str]:
        """The text of every live document."""
        return {name: self.notes.read(name).text for name in self.revisions()}

    def write(self, name: str, text: str) -> gitmem.Document:
        """Create a document, or replace its text."""
        try:
            return self.notes.replace(name, text=text, if_match=self.notes.read(name).revision)
        except gitmem.NotFoundError:
            return self.notes.create(name, title=name, text=text)

    def dirt(self) -> str:
        """What `git status` says, once everything that lags has been healed."""
        self.environment.close()
        return git(self.tree, "status", "--porcelain")


def pair(folder: Path, hub: Path) -> tuple[Machine, Machine]:
    """Two machines with the resource "notes", both at the same history."""
    one, two = Machine(folder / "one", str(hub)), Machine(folder / "two", str(hub))
    one.environment.deploy(agent="tutor", memories=[NOTES])
    one.environment.sync()
    two.environment.sync()
    return one, two
