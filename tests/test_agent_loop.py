"""A host's loop as it would be written around a model's API, with the model played by a script."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import gitmem
from gitmem import ErrorCode, Session
from tests.agents import NOTES, PLANS, WRITE, Desk, refusal
from tests.support import git
from tests.support import gitmem as run_gitmem

Block = dict[str, Any]
Reply = Callable[[str], list[Block]]
"""A model's turn: given its memory's text, what it says and which tools it calls."""


def saying(text: str) -> Block:
    return {"type": "text", "text": text}


def calling(name: str, **arguments: Any) -> Block:
    return {"type": "tool_use", "id": f"call_{name}", "name": name, "input": arguments}


class Host:
    """Runs an agent's turns: everything that the model sees or says passes as JSON."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.shown: list[str] = []

    def turn(self, reply: Reply, *, meanwhile: Callable[[], object] = lambda: None) -> list[Block]:
        """Render, let the model answer, and do what it calls; what the model is told of each call.

        `meanwhile` happens while the model thinks.
        """
        render = self.session.render([NOTES])
        text = render.use_memory("notes").text
        self.shown.append(text)
        offered = json.loads(json.dumps(render.tools.anthropic()))
        meanwhile()
        answers = []
        for block in json.loads(json.dumps(reply(text))):
            if block["type"] == "tool_use":
                assert block["name"] in [tool["name"] for tool in offered]
                answers.append(self._call(render, block))
        return answers

    def _call(self, render: gitmem.Render, block: Block) -> Block:
        try:
            content = render.call(block["name"], block["input"]).to_json()
        except gitmem.ToolArgumentError as error:
            return {"tool_use_id": block["id"], "is_error": True, "content": error.message}
        return {"tool_use_id": block["id"], "content": json.loads(json.dumps(content))}


def saves(text: str) -> Reply:
    return lambda _: [saying("I note that."), calling("memory_save", text=text)]


def adds(line: str) -> Reply:
    return lambda shown: [calling("memory_save", text=f"{shown}{line}\n")]


@pytest.fixture
def story(desk: Desk) -> Story:
    return Story(desk)


class Story:
    """What Git's log must say, checked as it grows."""

    def __init__(self, desk: Desk) -> None:
        self._folder = desk.environment.folder
        self._seen = self._lines()

    def _lines(self) -> list[str]:
        return git(self._folder, "log", "--reverse", "--format=%s|%(trailers:key=Gitmem-Session,valueonly)").split("\n")

    def told(self, *expected: str) -> None:
        """Just these commits came since the last look, each as `subject|session`."""
        lines = [line for line in self._lines() if line]
        seen = [line for line in self._seen if line]
        assert lines[: len(seen)] == seen
        assert lines[len(seen) :] == list(expected)
        self._seen = lines


def test_two_agents_and_an_owner_share_a_document(desk: Desk, story: Story) -> None:
    tutor, critic = (Host(desk.session(WRITE, agent=agent)) for agent in ("tutor", "critic"))
    by_tutor, by_critic = (f"replace notes/workshop|{host.session.id}" for host in (tutor, critic))

    (answer,) = tutor.turn(saves("Node.js 20.\n"))
    assert answer["content"]["status"] == "saved"
    story.told(by_tutor)

    # The critic thinks while the tutor saves: a conflict, with what is there now.
    answers = critic.turn(
        lambda shown: [
            calling("memory_save", text=f"{shown}Bring a laptop.\n"),
            calling("memory_save", text="at any price"),
        ],
        meanwhile=lambda: tutor.turn(adds("No Windows.")),
    )
    assert [each["content"]["status"] for each in answers] == ["conflict", "conflict"]
    assert answers[0]["content"]["text"] == "Node.js 20.\nNo Windows.\n"
    story.told(by_tutor)

    # In the next model step it reconciles.
    (answer,) = critic.turn(adds("Bring a laptop."))
    assert answer["content"]["status"] == "saved"
    assert critic.shown[-1] == "Node.js 20.\nNo Windows.\n"
    story.told(by_critic)

    # The owner freezes it mid-session; earlier saves stay, owner edits go on, agents' saves do not.
    (answer,) = tutor.turn(adds("Never."), meanwhile=desk.freeze)
    assert answer["content"] == {"status": "rejected", "reason": "agent_writes_disabled"}
    story.told("freeze notes/workshop|")
    desk.own_edit("Node.js 22.\n")
    (answer,) = critic.turn(adds("Never."))
    assert answer["content"]["reason"] == "agent_writes_disabled"
    assert critic.shown[-1] == "Node.js 22.\n"
    story.told("replace notes/workshop|")
    desk.unfreeze()
    assert tutor.turn(adds("With npm."))[0]["content"]["status"] == "saved"
    story.told("unfreeze notes/workshop|", by_tutor)

    # The critic's session is ended while its model thinks; unfreezing revives nothing.
    (answer,) = critic.turn(adds("Too late."), meanwhile=critic.session.end)
    assert answer["content"] == {"status": "rejected", "reason": "session_closed"}
    refusal(ErrorCode.SESSION_CLOSED, lambda: critic.turn(adds("Too late.")))
    story.told()

    # The owner deletes the document while the tutor thinks.
    (answer,) = tutor.turn(adds("Gone."), meanwhile=desk.delete)
    assert answer["content"] == {"status": "rejected", "reason": "not_found"}
    story.told("delete notes/workshop|")
    refusal(ErrorCode.NOT_FOUND, lambda: tutor.turn(adds("Gone.")))

    # Everything that was saved is told, and nothing else.
    log = git(desk.environment.folder, "log", "--reverse", "--format=%H %s").splitlines()
    saved = [line.split()[0] for line in log if line.endswith("replace notes/workshop")]
    told = [event.revision for host in (tutor, critic) for event in host.session.events()]
    assert sorted(told) == sorted(revision for revision in saved if desk.notes.read("workshop", at=revision).writer.kind
                                  == "agent")  # fmt: skip
    assert [len(host.session.events()) for host in (tutor, critic)] == [3, 1]


def test_a_model_goes_on_after_a_tool_error(desk: Desk, story: Story) -> None:
    host = Host(desk.session(WRITE))
    answers = host.turn(
        lambda _: [
            calling("memory_save", content="x"),
            calling("memory_save", text=["x"]),
            calling("memory_save", text="Node.js 22."),
        ]
    )
    assert [each.get("is_error", False) for each in answers] == [True, True, False]
    assert "'content'" in answers[0]["content"]
    story.told(f"replace notes/workshop|{host.session.id}")


def test_the_end_of_a_session_outlives_the_deployment_that_it_had(desk: Desk, story: Story) -> None:
    host = Host(desk.session(WRITE))
    desk.environment.deploy(agent="tutor", memories=[PLANS])
    assert host.turn(saves("Still bound."))[0]["content"]["status"] == "saved"
    host.session.end()
    desk.environment.deploy(agent="tutor", memories=[NOTES, PLANS])
    refusal(ErrorCode.SESSION_CLOSED, lambda: host.turn(saves("No.")))
    story.told(f"replace notes/workshop|{host.session.id}")


def test_the_demo_plays_such_a_loop(tmp_path: Any) -> None:
    done = run_gitmem("demo", "--agent", "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    steps = json.loads(done.stdout)["steps"]
    told = [json.loads(step["output"]) for step in steps if step["command"].startswith("memory_save")]
    assert [result.get("reason", result["status"]) for result in told] == [
        "saved", "conflict", "conflict", "saved", "agent_writes_disabled", "saved", "session_closed", "not_found"
    ]  # fmt: skip
    assert steps[-1]["command"] == "git log"
    assert steps[-1]["output"].count("agent: replace notes/workshop") == 3
    assert [step["command"] for step in steps if step["status"]] == ["session.render()"] * 2
