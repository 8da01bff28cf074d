"""A client of `gitmem serve`: projects and environments on a server, used like those of a store."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

from gitmem.client import decoding
from gitmem.client.api import Api
from gitmem.client.connections import Connections
from gitmem.client.documents import RemoteDocuments
from gitmem.client.files import RemoteFiles
from gitmem.client.sessions import RemoteSession, RemoteSessions, read_session
from gitmem.errors import InvalidRequestError
from gitmem.limits import check_resource_id
from gitmem.memory import agreed
from gitmem.records import Deployment, Memory, Resource
from gitmem.store import ENVIRONMENTS

_TIMEOUT: Final = 60.0


class Client:
    """A store that `gitmem serve` serves at `url`, for whoever has `api_key`.

    It gives the records and raises the errors that `gitmem.Store` does; further,
    RemoteUnreachableError where the server does not answer, and RemoteRefusedError where what answers
    is not gitmem. Threads may share it. Use it as a context manager, or close it.
    """

    def __init__(self, url: str, api_key: str | None = None, *, timeout: float = _TIMEOUT) -> None:
        """`timeout` is in seconds, for each time that the server lets the client wait. Raises InvalidRequestError."""
        self._api = Api(Connections(url, timeout), api_key)

    def project(self, project_id: str) -> RemoteProject:
        """A project by its id. Its first use raises ProjectNotFoundError where there is none."""
        return RemoteProject(self._api, check_resource_id(project_id, "project id"))

    def close(self) -> None:
        """Give back every connection. The client may be used again."""
        self._api.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class RemoteProject:
    """What `gitmem.Project` is to a store on this machine, as far as a server goes."""

    def __init__(self, api: Api, project_id: str) -> None:
        self._api = api
        self.id = project_id

    def environment(self, name: str = "development") -> RemoteEnvironment:
        """`development` or `production`. Raises InvalidRequestError for any other name."""
        if name not in ENVIRONMENTS:
            raise InvalidRequestError(f"{ascii(name)[:40]} is no environment: use development or production.")
        return RemoteEnvironment(self._api, self.id, name)

    def files(self) -> RemoteFiles:
        """The memory files as the key's member sees them (seed 003)."""
        return RemoteFiles(self._api, self.id)

    def session(self, session_id: str) -> RemoteSession:
        """A session of either environment, by its id. Raises NotFoundError."""
        return read_session(self._api, self.id, session_id)


class RemoteEnvironment:
    """What `gitmem.Environment` is to a store on this machine, as far as a server goes."""

    def __init__(self, api: Api, project: str, name: str) -> None:
        self._api = api
        self._project = project
        self.name = name

    @cached_property
    def sessions(self) -> RemoteSessions:
        """The sessions of this environment."""
        return RemoteSessions(self._api, self._project, self.name)

    def documents(self, resource: str) -> RemoteDocuments:
        """The documents of a resource. Raises InvalidRequestError for an id outside the grammar."""
        return RemoteDocuments(self._api, self._project, self.name, resource)

    def deploy(self, *, agent: str, memories: Sequence[Memory]) -> Deployment:
        """Apply the declarations, then make them the agent's active deployment here."""
        check_resource_id(agent, "agent id")
        declared = [memory.to_json() for memory in agreed(memories)]
        body = {"agentId": agent, "alias": self.name, "memory": declared}
        answer = self._api.ask("POST", "deployments", query={"projectId": self._project}, body=body)
        return answer.into(lambda value: decoding.deployment({**value, "memory": declared}))

    def deployments(self) -> dict[str, Deployment]:
        """The active deployment of each agent, by agent id."""
        query = {"projectId": self._project, "environment": self.name}
        return self._api.ask("GET", "agents", query=query).into(_deployments)

    def inventory(self) -> list[Resource]:
        """Every resource, retired ones too, by id (seed 000, "Resource inventory")."""
        answer = self._api.ask("GET", "projects", self._project, "memory", query={"environment": self.name})
        return answer.into(lambda value: [decoding.resource(found) for found in value["resources"]])

    def close(self) -> None:
        """Give back every connection, the client's others too. All may be used again."""
        self._api.close()


def _deployments(value: Any) -> dict[str, Deployment]:
    return {agent["id"]: decoding.deployment(found) for agent in value["agents"] for found in agent["deployments"]}
