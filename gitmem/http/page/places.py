"""Where things are on the page: their addresses, and the way there from the start."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A project's environment, or something in it. Ids of gitmem need no quoting in an address."""

    project: str
    environment: str
    resource: str | None = None
    document: str | None = None

    @property
    def url(self) -> str:
        found = f"/projects/{self.project}/{self.environment}"
        if self.resource is not None:
            found += f"/memory/{self.resource}"
        if self.document is not None:
            found += f"/documents/{self.document}"
        return found

    @property
    def sessions_url(self) -> str:
        return f"/projects/{self.project}/{self.environment}/sessions"

    def session_url(self, session_id: str) -> str:
        return f"{self.sessions_url}/{session_id}"

    @property
    def top(self) -> Place:
        """The environment."""
        return Place(project=self.project, environment=self.environment)

    def of(self, resource: str, document: str | None = None) -> Place:
        """A resource of the same environment, or a document of it."""
        return replace(self, resource=resource, document=document)

    @property
    def crumbs(self) -> list[tuple[str, str]]:
        """Names and addresses from the start to here."""
        found = [("Projects", "/"), (f"{self.project} / {self.environment}", self.top.url)]
        if self.resource is not None:
            found.append((self.resource, self.of(self.resource).url))
        if self.document is not None:
            found.append((self.document, self.url))
        return found
