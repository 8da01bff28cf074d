"""The tour of agents: two of them and an owner on one document, each step held against Git's log."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from gitmem.cli.steps import Step, log_of
from gitmem.errors import EXIT_DONE, EXIT_FAILED, GitmemError, StorageError
from gitmem.memory import define_memory
from gitmem.records import Document
from gitmem.render import Render
from gitmem.sessions import Session
from gitmem.store import Environment, open_store

_NOTES: Final = define_memory(id="notes", description="Workshop requirements and decisions.")
_SAVED: Final = "agent: replace notes/workshop"


class AgentTour:
    """A host's loop with scripted models: render, model turn, tool call, next render."""

    def __init__(self, folder: str, show: Callable[[Step], None]) -> None:
        self._folder = folder
        self._show = show
        self._seen = 0

    def run(self) -> None:
        """All of it. Raises StorageError where a step did not end as it should."""
        with open_store(self._folder, create=True) as store:
            self._play(store.project("workshop-bot").create().environment())

    def _play(self, environment: Environment) -> None:
        self._environment = environment
        self._documents = environment.documents("notes")
        tutor, critic = self._begin()
        self._work(tutor, critic)
        self._freeze(tutor)
        self._end(critic)
        self._delete(tutor)
        self._look_back(tutor, critic)

    def _begin(self) -> tuple[Session, Session]:
        for agent in ("tutor", "critic"):
            self._environment.deploy(agent=agent, memories=[_NOTES])
        tutor, critic = self._start("tutor"), self._start("critic")
        self._step(
            "Two agents start on one document, which is created on the way.",
            'sessions.start_on_document(agent="tutor", resource="notes", document_id="workshop", ...)',
            f"{tutor.id} of {tutor.agent_id}\n{critic.id} of {critic.agent_id}",
            "owner: create notes/workshop", "owner: declare notes", "owner: init",
        )  # fmt: skip
        return tutor, critic

    def _start(self, agent: str) -> Session:
        started = self._environment.sessions.start_on_document(
            agent=agent, resource="notes", document_id="workshop", document={"title": "Workshop notes"},
            idempotency_key=f"topic/workshop/{agent}",
        )  # fmt: skip
        return started.session

    def _work(self, tutor: Session, critic: Session) -> None:
        first, second = self._render(tutor), self._render(critic)
        self._save("Both have read it. The tutor saves ...", first, "Exercises run on Node.js 20.\n", "saved", _SAVED)
        text = "Bring a laptop.\n"
        current = self._save("... and the critic, who has not seen that, learns of it.", second, text, "conflict")
        self._save("The same response cannot save at all any more.", second, current["text"] + text, "conflict")
        merged = self._render(critic)
        self._save(
            "In its next step the critic reads again and puts both together.",
            merged, merged.use_memory(_NOTES).text + text, "saved", _SAVED,
        )  # fmt: skip

    def _freeze(self, tutor: Session) -> None:
        render = self._render(tutor)
        self._write("The owner freezes the document while the tutor thinks ...", "freeze", agent_writes="disabled")
        self._save("... so the tutor's save is turned away.", render, "Never mind.\n", "agent_writes_disabled")
        self._write("Later agents may write again ...", "unfreeze", agent_writes="enabled")
        again = self._render(tutor)
        newer = again.use_memory(_NOTES).text.replace("20", "22")
        self._save("... and the tutor's next turn saves.", again, newer, "saved", _SAVED)

    def _end(self, critic: Session) -> None:
        render = self._render(critic)
        critic.end()
        self._step("The critic's session is ended.", "session.end()", critic.inspect().status)
        self._save("What its model still wants to save is refused ...", render, "Too late.\n", "session_closed")
        self._refused("... and there is no further turn.", critic)

    def _delete(self, tutor: Session) -> None:
        render = self._render(tutor)
        self._documents.delete("workshop", if_match=self._document().revision)
        deletion = "owner: delete notes/workshop"
        self._step("The owner deletes the document.", "documents.delete(...)", "deleted", deletion)
        self._save("A save that was under way finds nothing ...", render, "Back again.\n", "not_found")
        self._refused("... and the next turn does not start.", tutor)

    def _look_back(self, tutor: Session, critic: Session) -> None:
        told = [event.to_json() for session in (tutor, critic) for event in session.events()]
        self._step("Each save is an event of its session.", "session.events()", "\n".join(map(json.dumps, told)))
        self._step("And Git has all of it.", "git log", log_of(self._environment))

    # One step each

    def _render(self, session: Session) -> Render:
        return session.render([_NOTES])

    def _document(self) -> Document:
        return self._documents.read("workshop")

    def _write(self, about: str, operation: str, **change: Any) -> None:
        self._documents.patch("workshop", if_match=self._document().revision, **change)
        self._step(about, f"documents.patch({change})", "done", f"owner: {operation} notes/workshop")

    def _save(self, about: str, render: Render, text: str, expected: str, *commits: str) -> dict[str, Any]:
        arguments = {"text": text}
        result = render.call("memory_save", arguments).to_json()
        told = json.dumps(result, ensure_ascii=False)
        if expected not in (result["status"], result.get("reason")):
            raise StorageError(f"The demo went wrong at a save that should be {expected}: {told}")
        self._step(about, f"memory_save({json.dumps(arguments)})", told, *commits)
        return result

    def _refused(self, about: str, session: Session) -> None:
        try:
            session.render()
        except GitmemError as error:
            self._step(about, "session.render()", error.message, status=EXIT_FAILED)
            return
        raise StorageError("The demo went wrong: a render that should be refused was not.")

    def _step(self, about: str, command: str, output: str, *commits: str, status: int = EXIT_DONE) -> None:
        """Show what was done, once Git's log has just these further commits, the newest first."""
        lines = log_of(self._environment).splitlines()
        new = tuple(map(_without_names, lines[: len(lines) - self._seen]))
        if new != commits:
            raise StorageError(f"The demo went wrong at {command}: Git's log has {new}, not {commits}.")
        self._seen = len(lines)
        self._show(Step(about=about, command=command, status=status, output=output))


def _without_names(line: str) -> str:
    """A line of the log without its hash; the owner goes by whatever name Git's configuration has."""
    author, _, subject = line.partition(" ")[2].rpartition(": ")
    return f"{author if author == 'agent' else 'owner'}: {subject}"
