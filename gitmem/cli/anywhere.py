"""Opening what a command is about where it may be: in a store on this machine, or on a server."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from gitmem import config
from gitmem.config import Config
from gitmem.errors import InvalidRequestError

if TYPE_CHECKING:
    from gitmem.cli.context import Options
    from gitmem.client.client import RemoteEnvironment, RemoteProject
    from gitmem.client.documents import RemoteDocuments
    from gitmem.client.files import RemoteFiles
    from gitmem.client.sessions import RemoteSession, RemoteSessions
    from gitmem.documents import Documents
    from gitmem.files import Files
    from gitmem.sessions import Session, Sessions
    from gitmem.store import Environment, Project

    AnyProject: TypeAlias = Project | RemoteProject
    AnyEnvironment: TypeAlias = Environment | RemoteEnvironment
    AnyDocuments: TypeAlias = Documents | RemoteDocuments
    AnyFiles: TypeAlias = Files | RemoteFiles
    AnySessions: TypeAlias = Sessions | RemoteSessions
    AnySession: TypeAlias = Session | RemoteSession


@contextmanager
def opened_environment(options: Options, *, fresh: bool = False) -> Generator[AnyEnvironment, None, None]:
    """The environment that the command is about, closed at the end. Raises what opening raises.

    `fresh` brings it to where its upstream is first, which only its own machine can.
    """
    if options.named_url is None:
        with options.opened() as environment:
            if fresh:
                environment.refresh()
            yield environment
    elif fresh:
        raise InvalidRequestError("A server reads what it has; --fresh is for a store on this machine. Leave it out.")
    else:
        with opened_project(options) as (project, _):
            yield project.environment(options.environment or "development")


@contextmanager
def opened_for_writing(options: Options) -> Generator[AnyEnvironment, None, None]:
    """The same for a command that writes: what it replaces is what there is, on whatever machine that was made."""
    if options.named_url is None:
        with options.opened() as environment:
            environment.refresh(needed=False)
            yield environment
    else:
        with opened_environment(options) as remote:
            yield remote


@contextmanager
def opened_project(options: Options) -> Generator[tuple[AnyProject, Config], None, None]:
    """The project that the command is about, and what the nearest `gitmem.toml` says, closed at the end."""
    url = options.named_url
    if url is None:
        with options.opened_store() as store:
            yield options.project_of(store), store.config
        return
    from gitmem.client.client import Client

    settings = _nearest_settings()
    with Client(url, _api_key(options)) as client:
        yield client.project(options.project_id(settings)), settings


@contextmanager
def opened_files(options: Options, member: str | None) -> Generator[AnyFiles, None, None]:
    """The memory files of the project, as `member` sees them, or who this is; on a server its key says that."""
    if options.named_url is None:
        with options.opened_store() as store:
            here = options.project_of(store)
            known = member if member is not None else os.environ.get("GITMEM_MEMBER") or here.own_member()
            if known is None:
                raise InvalidRequestError(
                    "Who are you? Give --member, set GITMEM_MEMBER, or tell Git: git config --global user.email."
                )
            yield here.files(member=known)
        return
    from gitmem.client.client import RemoteProject

    if member is not None:
        raise InvalidRequestError("On a server the key says who you are. Leave --member out.")
    with opened_project(options) as (project, _):
        assert isinstance(project, RemoteProject)
        yield project.files()


def _nearest_settings() -> Config:
    """What `gitmem.toml` here or above says; a command on a server needs none."""
    folder = config.find(os.getcwd())
    return config.read(folder) if folder is not None else Config()


def _api_key(options: Options) -> str | None:
    """The key that the caller named: never on the command line itself, which others can see."""
    path = options.api_key_file
    if path is None:
        key = os.environ.get("GITMEM_API_KEY", "").strip()
        if key:
            return key
        path = os.environ.get("GITMEM_API_KEY_FILE") or None
    if path is None:
        return None
    from gitmem.cli.textinput import read_text

    key = read_text(path).strip()
    if not key:
        raise InvalidRequestError(f"{path} holds no API key.")
    return key
