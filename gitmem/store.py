"""A store, its projects and their environments: where every use of gitmem begins."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

from gitmem import config
from gitmem.config import Config
from gitmem.documents import Documents
from gitmem.environment.engine import EnvironmentRepository
from gitmem.environment.layout import Name, locate
from gitmem.environment.settings import DEFAULTS, Settings
from gitmem.errors import InvalidRequestError, NotFoundError, ProjectNotFoundError, StorageError
from gitmem.limits import check_document_id, check_resource_id
from gitmem.memory import agreed
from gitmem.records import Deployment, Document, Memory, Resource

if TYPE_CHECKING:
    from gitmem.conflicts import DocumentConflict
    from gitmem.control.deployments import Deployments
    from gitmem.control.ledger import Ledger
    from gitmem.control.sessions import SessionRecords
    from gitmem.environment.adopting import Adoption, Discarded
    from gitmem.environment.draft import Draft
    from gitmem.environment.status import Status
    from gitmem.filepaths import Scope
    from gitmem.files import Files, Role
    from gitmem.remotes import Remotes
    from gitmem.sessions import Session, Sessions
    from gitmem.syncing import Synced

ENVIRONMENTS: Final = ("development", "production")


class Environment(EnvironmentRepository):
    """One environment of a project: a Git repository of documents.

    Made on its first write. Every handle sees the tip that anybody moved: each operation starts
    from the ref.
    """

    def __init__(self, project: Project, name: str, settings: Settings) -> None:
        super().__init__(os.path.join(project.folder, name), settings)
        self.name = name
        self._project = project

    @property
    def control(self) -> Ledger:
        """The control repository of the project."""
        return self._project.control

    @cached_property
    def sessions(self) -> Sessions:
        """The sessions of this environment."""
        from gitmem.sessions import Sessions

        return Sessions(self, self.name, self._project.deployments, self._project.session_records)

    @cached_property
    def remotes(self) -> Remotes:
        """The Git remotes of this environment."""
        from gitmem.remotes import Remotes

        return Remotes(self)

    def sync(self, remote: str | None = None, *, timeout: float = 30.0) -> Synced:
        """Bring this environment and a remote to the same history; the upstream, or the only remote, unless named.

        `timeout` is in seconds. Documents merge field by field and text by lines; what cannot be
        merged is a conflict, and stops nothing else. Raises RemoteUnreachableError,
        RemoteRefusedError, RemoteHistoryError; NotFoundError where there is no such remote.
        """
        from gitmem.syncing import sync

        return sync(self, remote, timeout)

    def conflicts(self) -> list[DocumentConflict]:
        """The conflicts that nobody has settled, by document."""
        from gitmem.conflicts import conflicts

        return conflicts(self)

    def resolve(
        self, resource: str, document_id: str, *, take: Literal["ours", "theirs"] | None = None, text: str | None = None
    ) -> Document:
        """Settle a conflict: take title, summary and text of one side, or give a text. Raises NotFoundError."""
        from gitmem.conflicts import resolve

        return resolve(self, resource, document_id, take=take, text=text)

    def documents(self, resource: str) -> Documents:
        """The documents of a resource. Raises InvalidRequestError for an id outside the grammar."""
        return Documents(self, resource)

    def deploy(self, *, agent: str, memories: Sequence[Memory]) -> Deployment:
        """Apply the declarations, then make them the agent's active deployment here.

        Limits are applied first and stay applied if the activation fails (seed 000,
        "Configuration"). Raises InvalidRequestError where two declarations of one id disagree, or a
        resource would change its kind of provider.
        """
        check_resource_id(agent, "agent id")
        declared = agreed(memories)

        def change(draft: Draft) -> None:
            known = {memory.id: draft.find_resource(memory.id) for memory in declared}
            for memory in declared:
                before = known[memory.id]
                if before is not None and before.provider.kind != memory.provider.kind:
                    raise InvalidRequestError(
                        f"{memory.id} is of kind {before.provider.kind}, which cannot change. Use a new id."
                    )
                if before != memory:
                    draft.declare(memory)

        self.save(change)
        return self._project.deployments.activate(agent, self.name, declared)

    def deployments(self) -> dict[str, Deployment]:
        """The active deployment of each agent, by agent id."""
        return self._project.deployments.active(self.name)

    def inventory(self) -> list[Resource]:
        """Every resource, retired ones too, by id (seed 000, "Resource inventory")."""
        declared = {memory.id for deployment in self.deployments().values() for memory in deployment.memory}
        return [
            Resource(id=memory.id, provider=memory.provider, declared=memory.id in declared, documents=count)
            for memory, count in self.resources()
        ]

    def status(self) -> Status:
        """Where HEAD stands, and every file that is not what the tip says. Raises DamagedError."""
        from gitmem.environment.status import status

        return status(self)

    def adopt(self, *, deletions: bool = False) -> Adoption:
        """Commit every hand edit, one owner's commit each; what cannot be committed is left alone.

        `deletions`: also where so much is gone that it looks like a loss. Raises BusyError while the
        working tree does not stand for main, or a merge and the like is under way.
        """
        from gitmem.environment.adopting import adopt

        return adopt(self, deletions=deletions)

    def discard(self, resource: str, document_id: str) -> Discarded:
        """Give up the hand edit of a document; its file is kept aside. Raises NotFoundError, BusyError."""
        from gitmem.environment.adopting import discard

        return discard(self, Name(check_resource_id(resource), check_document_id(document_id)))

    def path(self, resource: str | None = None, document_id: str | None = None) -> str:
        """Where the working tree, a resource's folder or a document's file lies on the disk.

        Raises NotFoundError for what does not exist, and for a file where there is no working tree.
        """
        if resource is None:
            return self.folder
        if self.resource(check_resource_id(resource)) is None:
            raise NotFoundError(f"There is no resource {resource} here. See gitmem resources.")
        parts = self.parts()
        if parts.worktree is None:
            raise NotFoundError(f"{self.folder} is kept without a working tree. Use gitmem show or export.")
        if document_id is None:
            return os.path.join(self.folder, resource)
        name = Name(resource, check_document_id(document_id))
        tip = parts.repository.tip() if self.find(name) else None
        if tip is None:
            raise NotFoundError(f"There is no document {name}. See gitmem list {resource}.")
        return os.path.join(self.folder, *locate(parts.repository.trees, parts.repository.commit(tip).tree, name)[0])


class Project:
    """One application's memory: two environments and a control repository."""

    def __init__(self, folder: str, project_id: str, settings: Settings, allowed: frozenset[str] = frozenset()) -> None:
        self.folder = folder
        self.id = project_id
        self._allowed = allowed
        self._settings = settings
        self._environments: dict[str, Environment] = {}
        self._files: dict[str, EnvironmentRepository] = {}
        self._lock = threading.Lock()

    # What follows is imported and made when it is first asked for: a command that only reads
    # documents starts faster without it.

    @cached_property
    def control(self) -> Ledger:
        """The project's `control.git`."""
        from gitmem.control.ledger import Ledger

        folder = os.path.join(self.folder, "control.git")
        return Ledger(folder, durable=self._settings.durable, clock=self._settings.clock)

    @cached_property
    def deployments(self) -> Deployments:
        """What was deployed, in either environment."""
        from gitmem.control.deployments import Deployments

        return Deployments(self.control)

    @cached_property
    def session_records(self) -> SessionRecords:
        """What is kept of sessions, in either environment."""
        from gitmem.control.sessions import SessionRecords

        return SessionRecords(self.control, self._settings.progress)

    @property
    def exists(self) -> bool:
        """Whether anything of the project has been made."""
        return os.path.isdir(self.folder)

    def create(self) -> Project:
        """Make the project's control repository; its environments come with their first write."""
        self.control.create()
        return self

    def environment(self, name: str = "development") -> Environment:
        """`development` or `production`. Raises InvalidRequestError for any other name."""
        if name not in ENVIRONMENTS:
            raise InvalidRequestError(f"{ascii(name)[:40]} is no environment: use development or production.")
        with self._lock:
            if name not in self._environments:
                self._environments[name] = Environment(self, name, self._settings)
            return self._environments[name]

    def files(self, *, member: str | None, role: Role = "owner", session: Session | None = None) -> Files:
        """The memory files as a member sees them (seed 003). An agent's session writes for its member.

        Whoever opens a store may say who they are; over the network a key says it. Raises
        InvalidRequestError.
        """
        from gitmem.clock import from_rfc3339
        from gitmem.files import Caller, Files

        if role not in ("owner", "admin", "member"):
            raise InvalidRequestError(f"{ascii(role)[:40]} is no role: use owner, admin or member.")
        caller = Caller(
            member=member,
            role=role,
            session=session.id if session else None,
            started=from_rfc3339(session.created_at) if session else None,
        )
        personal = self.personal_files(member) if member is not None else None
        return Files(self.team_files, personal, caller, allowed=self._allowed)

    def own_member(self) -> str | None:
        """Who this is as a member, for whom nobody says it: the address of the person's Git identity."""
        from gitmem.git.config import identity, shared_configs

        found = identity(shared_configs())
        return found[1] or None if found else None

    @property
    def team_files(self) -> EnvironmentRepository:
        """The repository of the team's memory files."""
        return self._files_in("team", "team")

    def personal_files(self, member: str) -> EnvironmentRepository:
        """The repository of a member's own memory files. Raises InvalidRequestError."""
        from gitmem.files import checked_member, personal_folder

        return self._files_in("personal", os.path.join("personal", personal_folder(checked_member(member))))

    def file_repositories(self) -> dict[str, EnvironmentRepository]:
        """Every repository of memory files that has been made, by its place in the project."""
        found = {"team": self.team_files} if self.team_files.exists else {}
        with suppress(FileNotFoundError):
            for name in sorted(os.listdir(os.path.join(self.folder, "personal"))):
                place = self._files_in("personal", os.path.join("personal", name))
                if place.exists:
                    found[f"personal/{name}"] = place
        return found

    def _files_in(self, scope: Scope, folder: str) -> EnvironmentRepository:
        from gitmem.environment.form import PERSONAL_FILES, TEAM_FILES

        with self._lock:
            if folder not in self._files:
                form = TEAM_FILES if scope == "team" else PERSONAL_FILES
                place = os.path.join(self.folder, folder)
                self._files[folder] = EnvironmentRepository(place, replace(self._settings, form=form))
            return self._files[folder]

    def packing_due(self) -> list[Environment]:
        """The environments that gitmem gc would be of use to, and that saved something through this handle."""
        due = [environment for environment in self._environments.values() if environment.is_packing_due()]
        if any(files.is_packing_due() for files in self._files.values()):
            due = due or [self.environment()]
        if not due and "control" in self.__dict__ and self.control.is_packing_due():
            return [self.environment()]
        return due

    def session(self, session_id: str) -> Session:
        """A session of either environment, by its id. Raises NotFoundError."""
        return self.environment(self.session_records.get(session_id).alias).sessions.get(session_id)

    def close(self) -> None:
        for environment in (*self._environments.values(), *self._files.values()):
            environment.close()
        if "session_records" in self.__dict__:
            self.session_records.close()
        if "control" in self.__dict__:
            self.control.close()


class Store:
    """A folder that holds projects. Use it as a context manager, or close it."""

    def __init__(self, folder: str, settings: Config, environment_settings: Settings) -> None:
        self.folder = folder
        self.config = settings
        self._settings = environment_settings
        self._projects: dict[str, Project] = {}
        self._lock = threading.Lock()

    def project(self, project_id: str) -> Project:
        """A project by its id, made on its first write. Raises InvalidRequestError."""
        check_resource_id(project_id, "project id")
        with self._lock:
            if project_id not in self._projects:
                self._projects[project_id] = Project(
                    os.path.join(self.folder, project_id), project_id, self._settings, self.config.allowed
                )
            return self._projects[project_id]

    def existing_project(self, project_id: str) -> Project:
        """A project that has been made. Raises ProjectNotFoundError."""
        check_resource_id(project_id, "project id")
        # Looked for first: a server is asked for many that do not exist, and is to keep none of them.
        if not os.path.isdir(os.path.join(self.folder, project_id)):
            raise ProjectNotFoundError(f"There is no project {project_id} in {self.folder}. Make it with gitmem init.")
        return self.project(project_id)

    def projects(self) -> list[str]:
        """The ids of the projects that have been made."""
        found = []
        with os.scandir(self.folder) as entries:
            for entry in entries:
                if entry.is_dir() and not entry.name.startswith("."):
                    found.append(entry.name)
        return sorted(found)

    def packing_due(self) -> list[Environment]:
        """The environments that gitmem gc would be of use to, and that saved something through this handle."""
        return [environment for project in self._projects.values() for environment in project.packing_due()]

    def close(self) -> None:
        """Bring every open environment to rest and give back its handles."""
        for project in self._projects.values():
            project.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def open_store(folder: str | os.PathLike[str], *, create: bool = False, settings: Settings = DEFAULTS) -> Store:
    """Open the store in `folder`, marked by its `gitmem.toml`.

    `create` makes it where there is none. `gitmem.toml`'s durability and worktree override
    `settings`. Raises StorageError where there is no store.
    """
    path = os.path.abspath(os.fspath(folder))
    if not os.path.isfile(os.path.join(path, config.FILE)):
        if not create:
            raise StorageError(f"{path} is not a gitmem store: it has no {config.FILE}. Make one with gitmem init.")
        config.write_new(path, None)
    found = config.read(path)
    return Store(
        path,
        found,
        replace(
            settings,
            durable=settings.durable and found.durability == "full",
            worktree=settings.worktree and found.worktree,
        ),
    )
