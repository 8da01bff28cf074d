"""The faces that people and programs use a store by, each behind the same verbs.

Every verb answers what the command of its name answers with --json, or raises Refused with the code.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

from click.testing import CliRunner

import gitmem
from gitmem import export as exporting
from gitmem.cli.main import cli
from gitmem.client.client import RemoteEnvironment, RemoteProject
from gitmem.client.files import RemoteFiles
from gitmem.filepaths import Scope, normalized
from gitmem.files import ANYTHING, Files

MEMBER = "pat@example.org"
"""Whose memory files every face sees."""


class Refused(Exception):
    """A refusal, by its code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class Face(Protocol):
    """One way to a project's development environment, with the resource "notes"."""

    def list(self) -> Any: ...
    def show(self, document_id: str, *, revision: str | None = None) -> Any: ...
    def create(
        self, document_id: str, *, title: str, text: str = "", summary: str = "", frozen: bool = False
    ) -> Any: ...
    def edit(self, document_id: str, *, text: str, summary: str | None = None, if_match: str | None = None) -> Any: ...
    def retitle(self, document_id: str, title: str, *, if_match: str | None = None) -> Any: ...
    def freeze(self, document_id: str) -> Any: ...
    def unfreeze(self, document_id: str) -> Any: ...
    def remove(self, document_id: str, *, if_match: str | None = None) -> Any: ...
    def restore(self, document_id: str, revision: str) -> Any: ...
    def log(self, document_id: str) -> Any: ...
    def diff(self, document_id: str, *revisions: str) -> Any: ...
    def resources(self) -> Any: ...
    def deploy(self, agent: str, module: Path) -> Any: ...
    def export(self, out: Path, *resources: str) -> Any: ...
    def start(self, *memory: str, key: str | None = None, create: bool = False) -> Any: ...
    def sessions(self) -> Any: ...
    def session(self, session_id: str) -> Any: ...
    def end(self, session_id: str) -> Any: ...
    def events(self, session_id: str, *, after: int = 0) -> Any: ...
    def put_file(
        self, scope: Scope, path: str, text: str, *, if_match: str | None = None, new: bool = False
    ) -> Any: ...
    def show_file(self, scope: Scope, path: str, *, revision: str | None = None) -> Any: ...
    def files(self, scope: Scope) -> Any: ...
    def file_log(self, scope: Scope, path: str) -> Any: ...
    def file_diff(self, scope: Scope, path: str, *revisions: str) -> Any: ...
    def restore_file(self, scope: Scope, path: str, revision: str) -> Any: ...
    def remove_file(self, scope: Scope, path: str, *, if_match: str | None = None) -> Any: ...
    def context(self) -> Any: ...
    def enable(self, enabled: bool) -> Any: ...


class Library:
    """The library, on a store here or on a server."""

    def __init__(self, project: gitmem.Project | RemoteProject, files: Files | RemoteFiles) -> None:
        self._project = project
        self._files = files
        self._environment: gitmem.Environment | RemoteEnvironment = project.environment()
        self._notes = self._environment.documents("notes")

    def list(self) -> Any:
        found = [self._notes.list()]
        while (cursor := found[-1].next_cursor) is not None:
            found.append(self._notes.list(cursor=cursor))
        return {"documents": [info.to_json() for page in found for info in page.documents]}

    def show(self, document_id: str, *, revision: str | None = None) -> Any:
        return self._notes.read(document_id, at=revision).to_json()

    def create(self, document_id: str, *, title: str, text: str = "", summary: str = "", frozen: bool = False) -> Any:
        return self._notes.create(
            document_id, title=title, text=text, summary=summary, agent_writes="disabled" if frozen else "enabled"
        ).to_json()

    def edit(self, document_id: str, *, text: str, summary: str | None = None, if_match: str | None = None) -> Any:
        seen = self._seen(document_id, if_match)
        return self._notes.replace(document_id, text=text, summary=summary, if_match=seen).to_json()

    def retitle(self, document_id: str, title: str, *, if_match: str | None = None) -> Any:
        return self._notes.patch(document_id, title=title, if_match=self._seen(document_id, if_match)).to_json()

    def freeze(self, document_id: str) -> Any:
        return self._notes.patch(document_id, agent_writes="disabled", if_match=self._seen(document_id)).to_json()

    def unfreeze(self, document_id: str) -> Any:
        return self._notes.patch(document_id, agent_writes="enabled", if_match=self._seen(document_id)).to_json()

    def remove(self, document_id: str, *, if_match: str | None = None) -> Any:
        self._notes.delete(document_id, if_match=self._seen(document_id, if_match))
        return {"resource": "notes", "id": document_id, "deleted": True}

    def restore(self, document_id: str, revision: str) -> Any:
        return self._notes.restore(document_id, revision, if_match=self._seen(document_id)).to_json()

    def log(self, document_id: str) -> Any:
        found = [self._notes.history(document_id)]
        while (cursor := found[-1].next_cursor) is not None:
            found.append(self._notes.history(document_id, cursor=cursor))
        return {"versions": [version.to_json() for page in found for version in page.versions]}

    def diff(self, document_id: str, *revisions: str) -> Any:
        return {"diff": self._notes.diff(document_id, *revisions)}

    def resources(self) -> Any:
        return {"resources": [found.to_json() for found in self._environment.inventory()]}

    def deploy(self, agent: str, module: Path) -> Any:
        declared: dict[str, Any] = {}
        exec(module.read_text(), declared)
        memories = [value for value in declared.values() if isinstance(value, gitmem.Memory)]
        return self._environment.deploy(agent=agent, memories=memories).to_json()

    def export(self, out: Path, *resources: str) -> Any:
        return {"out": str(out)} | exporting.export(self._environment, str(out), resources=resources).to_json()

    def start(self, *memory: str, key: str | None = None, create: bool = False) -> Any:
        bindings: dict[str, dict[str, object]] = {}
        for name in memory:
            resource, is_document, document_id = name.partition("=")
            bindings[resource] = {"scope": "collection"}
            if is_document:
                bindings[resource] = {"scope": "document", "id": document_id, "access": "read-write"}
        documents = {name: {"title": str(bound["id"])} for name, bound in bindings.items() if create and "id" in bound}
        sessions = self._environment.sessions
        made: dict[str, gitmem.StartedDocument] = {}
        if create:
            made, started = sessions.start_on_documents(
                agent="tutor", memory=bindings, documents=documents, idempotency_key=key
            )
        else:
            started = sessions.create(agent="tutor", memory=bindings, idempotency_key=key)
        return {
            "session": started.inspect().to_json() | {"created": started.created},
            "deployment": started.deployment.to_json(),
            "documents": [
                {"resource": resource, "id": document.id, "created": document.created}
                for resource, document in made.items()
            ],
        }

    def sessions(self) -> Any:
        return {"sessions": [session.inspect().to_json() for session in self._environment.sessions]}

    def session(self, session_id: str) -> Any:
        return self._project.session(session_id).inspect().to_json()

    def end(self, session_id: str) -> Any:
        return self._project.session(session_id).end().to_json()

    def events(self, session_id: str, *, after: int = 0) -> Any:
        return {"events": [event.to_json() for event in self._project.session(session_id).events(after)]}

    def put_file(self, scope: Scope, path: str, text: str, *, if_match: str | None = None, new: bool = False) -> Any:
        expected = None if new else ANYTHING if if_match is None else if_match
        return self._files.put(scope, path, text, expected_revision_id=expected).to_json()

    def show_file(self, scope: Scope, path: str, *, revision: str | None = None) -> Any:
        return self._files.read(scope, path, at=revision).to_json()

    def files(self, scope: Scope) -> Any:
        found = [self._files.list(scope)]
        while (cursor := found[-1].next_cursor) is not None:
            found.append(self._files.list(scope, cursor=cursor))
        return {"files": [info.to_json() for page in found for info in page.files]}

    def file_log(self, scope: Scope, path: str) -> Any:
        found = [self._files.history(scope, path)]
        while (cursor := found[-1].next_cursor) is not None:
            found.append(self._files.history(scope, path, cursor=cursor))
        return {"revisions": [revision.to_json() for page in found for revision in page.revisions]}

    def file_diff(self, scope: Scope, path: str, *revisions: str) -> Any:
        return {"diff": self._files.diff(scope, path, *revisions)}

    def restore_file(self, scope: Scope, path: str, revision: str) -> Any:
        return self._files.restore(scope, path, revision).to_json()

    def remove_file(self, scope: Scope, path: str, *, if_match: str | None = None) -> Any:
        self._files.remove(scope, path, expected_revision_id=ANYTHING if if_match is None else if_match)
        return {"scope": scope, "path": normalized(scope, path), "removed": True}

    def context(self) -> Any:
        return {"files": [file.to_json() for file in self._files.context()]}

    def enable(self, enabled: bool) -> Any:
        self._files.enable(enabled)
        return {"scope": "personal", "enabled": self._files.is_enabled()}

    def _seen(self, document_id: str, if_match: str | None = None) -> str:
        return self._notes.info(document_id).revision if if_match is None else if_match


class CommandLine:
    """The command line, told by `where` which project of what it is about."""

    def __init__(self, *where: str) -> None:
        self._where = where

    def list(self) -> Any:
        return self._run("list", "notes")

    def show(self, document_id: str, *, revision: str | None = None) -> Any:
        return self._run("show", *_option("--revision", revision), "notes", "--", document_id)

    def create(self, document_id: str, *, title: str, text: str = "", summary: str = "", frozen: bool = False) -> Any:
        options = ["--title", title, "--summary", summary, "--text-stdin", *(["--frozen"] if frozen else [])]
        return self._run("create", *options, "notes", "--", document_id, stdin=text)

    def edit(self, document_id: str, *, text: str, summary: str | None = None, if_match: str | None = None) -> Any:
        options = ["--text-stdin", *_option("--summary", summary), *_option("--if-match", if_match)]
        return self._run("edit", *options, "notes", "--", document_id, stdin=text)

    def retitle(self, document_id: str, title: str, *, if_match: str | None = None) -> Any:
        return self._run("retitle", *_option("--if-match", if_match), "notes", "--", document_id, title)

    def freeze(self, document_id: str) -> Any:
        return self._run("freeze", "notes", "--", document_id)

    def unfreeze(self, document_id: str) -> Any:
        return self._run("unfreeze", "notes", "--", document_id)

    def remove(self, document_id: str, *, if_match: str | None = None) -> Any:
        return self._run("remove", *_option("--if-match", if_match), "notes", "--", document_id)

    def restore(self, document_id: str, revision: str) -> Any:
        return self._run("restore", "notes", "--", document_id, revision)

    def log(self, document_id: str) -> Any:
        return self._run("log", "notes", "--", document_id)

    def diff(self, document_id: str, *revisions: str) -> Any:
        return self._run("diff", "notes", "--", document_id, *revisions)

    def resources(self) -> Any:
        return self._run("resources")

    def deploy(self, agent: str, module: Path) -> Any:
        return self._run("deploy", "--agent", agent, "--module", str(module))

    def export(self, out: Path, *resources: str) -> Any:
        chosen = [word for resource in resources for word in ("--resource", resource)]
        return self._run("export", "--out", str(out), *chosen)

    def start(self, *memory: str, key: str | None = None, create: bool = False) -> Any:
        bound = [word for name in memory for word in ("--memory", name)]
        options = [*_option("--idempotency-key", key), *(["--create-document"] if create else [])]
        return self._run("session", "create", "--agent", "tutor", *bound, *options)

    def sessions(self) -> Any:
        return self._run("session", "list")

    def session(self, session_id: str) -> Any:
        return self._run("session", "show", "--", session_id)

    def end(self, session_id: str) -> Any:
        return self._run("session", "end", "--", session_id)

    def events(self, session_id: str, *, after: int = 0) -> Any:
        return self._run("session", "events", "--after", str(after), "--", session_id)

    def put_file(self, scope: Scope, path: str, text: str, *, if_match: str | None = None, new: bool = False) -> Any:
        options = [*_option("--if-match", if_match), *(["--new"] if new else [])]
        return self._run("file", "put", "--scope", scope, "--text-stdin", *options, "--", path, stdin=text)

    def show_file(self, scope: Scope, path: str, *, revision: str | None = None) -> Any:
        return self._run("file", "show", "--scope", scope, *_option("--revision", revision), "--", path)

    def files(self, scope: Scope) -> Any:
        return self._run("file", "list", "--scope", scope)

    def file_log(self, scope: Scope, path: str) -> Any:
        return self._run("file", "log", "--scope", scope, "--", path)

    def file_diff(self, scope: Scope, path: str, *revisions: str) -> Any:
        return self._run("file", "diff", "--scope", scope, "--", path, *revisions)

    def restore_file(self, scope: Scope, path: str, revision: str) -> Any:
        return self._run("file", "restore", "--scope", scope, "--", path, revision)

    def remove_file(self, scope: Scope, path: str, *, if_match: str | None = None) -> Any:
        return self._run("file", "remove", "--scope", scope, *_option("--if-match", if_match), "--", path)

    def context(self) -> Any:
        return self._run("file", "context")

    def enable(self, enabled: bool) -> Any:
        return self._run("file", "enable" if enabled else "disable")

    def _run(self, *arguments: str, stdin: str = "") -> Any:
        names = ("GITMEM_STORE", "GITMEM_PROJECT", "GITMEM_URL", "GITMEM_API_KEY", "VISUAL", "EDITOR")
        told: dict[str, str | None] = dict.fromkeys(names) | {"GITMEM_MEMBER": MEMBER}
        done = CliRunner().invoke(cli, [*self._where, "--json", *arguments], input=stdin.encode(), env=told)
        if done.exit_code == 0:
            assert done.stderr == ""
            return json.loads(done.stdout)
        assert done.stdout == ""
        (line,) = done.stderr.splitlines()
        error = json.loads(line)["error"]
        assert done.exit_code == gitmem.errors.EXIT_STATUS[gitmem.ErrorCode(error["code"])]
        raise Refused(error["code"], error["message"])


def _option(name: str, value: str | None) -> list[str]:
    return [] if value is None else [name, value]
