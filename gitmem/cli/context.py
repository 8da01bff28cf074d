"""What every command is told: which store, project and environment, and how to answer."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import click

from gitmem import config
from gitmem.cli.output import ProgressLine, note
from gitmem.config import Config
from gitmem.environment.settings import Settings
from gitmem.errors import InvalidRequestError, StorageError
from gitmem.records import Deployment
from gitmem.store import ENVIRONMENTS, Environment, Project, Store, open_store


@dataclass(kw_only=True, slots=True)
class Options:
    """The options that all commands share, and what they lead to."""

    store: str | None = None
    project: str | None = None
    environment: str | None = None
    url: str | None = None
    api_key_file: str | None = None
    json: bool = False
    progress: ProgressLine = field(default_factory=ProgressLine)

    @property
    def named_store(self) -> str | None:
        """The store as the caller named it."""
        return self.store if self.store is not None else os.environ.get("GITMEM_STORE") or None

    @property
    def named_url(self) -> str | None:
        """The server as the caller named it, unless a store is named. Raises InvalidRequestError for both."""
        if self.store is not None and (self.url is not None or self.api_key_file is not None):
            raise InvalidRequestError("Give --store, or --url with --api-key-file, not both.")
        if self.store is not None or self.url is not None:
            return self.url
        url = os.environ.get("GITMEM_URL") or None
        if url is None and self.api_key_file is not None:
            raise InvalidRequestError("--api-key-file goes with --url.")
        if url is not None and os.environ.get("GITMEM_STORE"):
            raise InvalidRequestError(
                "GITMEM_STORE and GITMEM_URL are both set. Unset one of them, or give --store or --url."
            )
        return url

    def check_here(self) -> None:
        """Raise InvalidRequestError where the caller named a server: this command needs the store itself."""
        if self.named_url is not None:
            raise InvalidRequestError(
                f"{click.get_current_context().command_path} needs the store itself: "
                "give --store in place of --url and GITMEM_URL."
            )

    @property
    def named_project(self) -> str | None:
        """The project as the caller named it."""
        return self.project if self.project is not None else os.environ.get("GITMEM_PROJECT") or None

    @contextmanager
    def opened(self) -> Generator[Environment, None, None]:
        """The environment that the command is about, closed at the end. Raises what opening raises."""
        with self.opened_store() as store:
            environment = self.environment_of(store)
            try:
                yield environment
            finally:
                lock = environment.lagging_behind()
        if lock:
            note(f"Done, but {lock} keeps .git/index behind. If no git is running, remove it.")

    def environment_of(self, store: Store) -> Environment:
        """The environment in an open store. Raises InvalidRequestError, ProjectNotFoundError."""
        return self.project_of(store).environment(self.environment or "development")

    def project_of(self, store: Store) -> Project:
        """The project in an open store. Raises InvalidRequestError, ProjectNotFoundError."""
        return store.existing_project(self.project_id(store.config))

    @contextmanager
    def opened_store(self) -> Generator[Store, None, None]:
        """The store that the command is about, closed at the end."""
        try:
            with open_store(self._folder(), settings=Settings(progress=self.progress)) as store:
                yield store
                due = store.packing_due()
        finally:
            self.progress.clear()
        for environment in due:
            _pack_later(environment)

    def _folder(self) -> str:
        self.check_here()
        if self.named_store is not None:
            return checked_folder(self.named_store)
        try:
            found = config.find(os.getcwd())
        except FileNotFoundError:
            raise StorageError("The current folder has been deleted. Go to another one, or give --store.") from None
        if found is None:
            raise StorageError(
                "This is not in a gitmem store: there is no gitmem.toml here or above. "
                "Go to the store, give --store, or make one with gitmem init."
            )
        return found

    def project_id(self, settings: Config) -> str:
        """The project, as named or as in `gitmem.toml`. Raises InvalidRequestError."""
        found = self.named_project if self.named_project is not None else settings.project
        if found is None:
            raise InvalidRequestError(
                'Which project? Give --project, set GITMEM_PROJECT, or write project = "NAME" in gitmem.toml.'
            )
        return found


def _pack_later(environment: Environment) -> None:
    """Let a process of its own pack what many commands have left loose, as git does after its commands."""
    import subprocess
    import sys

    project, name = os.path.split(environment.folder)
    store, project_id = os.path.split(project)
    command = [sys.executable, "-m", "gitmem", "gc", "--store", store, "--project", project_id, "--environment", name]
    nowhere = subprocess.DEVNULL
    subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere, start_new_session=True, cwd="/")


def checked_folder(folder: str) -> str:
    """Return a folder's name, or raise InvalidRequestError: an empty one would silently mean the current folder."""
    if not folder:
        raise InvalidRequestError("The name of the store's folder is empty.")
    return folder


def _keep(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    options = context.find_object(Options)
    if options is not None and parameter.name and value is not None and value is not False:
        setattr(options, parameter.name, value)


def shared_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that all commands share. They may stand before the command's name too."""
    for option in (
        click.option("--json", is_flag=True, expose_value=False, callback=_keep, help="Answer in JSON, errors too."),
        click.option(
            "--environment", type=click.Choice(ENVIRONMENTS), expose_value=False, callback=_keep,
            help="Which environment; development unless given.",
        ),
        click.option(
            "--api-key-file", metavar="FILE", expose_value=False, callback=_keep, help="Where the server's API key is."
        ),
        click.option("--url", metavar="URL", expose_value=False, callback=_keep, help="A server, in place of a store."),
        click.option("--project", metavar="P", expose_value=False, callback=_keep, help="Which project."),
        click.option("--store", metavar="DIR", expose_value=False, callback=_keep, help="Where the store is."),
    ):  # fmt: skip
        function = option(function)
    return function


def command(name: str) -> Callable[[Callable[..., int | None]], click.Command]:
    """Make a function the command `name`; it gets the Options first and may return an exit status."""

    def decorate(function: Callable[..., int | None]) -> click.Command:
        return click.command(name)(shared_options(click.pass_obj(function)))

    return decorate


class Deployed(Protocol):
    """Where agents are deployed."""

    def deployments(self) -> dict[str, Deployment]: ...


def agent_of(settings: Config, environment: Deployed, named: str | None) -> str:
    """The agent that a command is about: as named, as in `gitmem.toml`, or the only one. Raises InvalidRequestError."""
    chosen = named if named is not None else settings.agent
    if chosen is not None:
        return chosen
    agents = list(environment.deployments())
    if len(agents) == 1:
        return agents[0]
    known = f": {', '.join(agents)} are deployed" if agents else ""
    raise InvalidRequestError(f'Which agent{known}? Give --agent, or write agent = "NAME" in gitmem.toml.')
