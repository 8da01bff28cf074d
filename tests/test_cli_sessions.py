"""The commands about sessions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gitmem
from tests.agents import save
from tests.cli import Cli, prepared
from tests.support import clean_environment

PLANS = '[memory.plans]\ndescription = "What comes next."\n'


@pytest.fixture
def run(tmp_path: Path) -> Cli:
    """A store with the resources "notes" and "plans", and the document notes/workshop."""
    made = prepared(tmp_path / "store")
    with (made.folder / "gitmem.toml").open("a") as file:
        file.write(PLANS)
    made.ok("deploy")
    made.ok("create", "notes", "workshop", "--title", "Workshop notes")
    return made


def session(run: Cli, *arguments: str) -> Any:
    """Run a command of the group with --json."""
    return json.loads(run.ok("session", *arguments, "--json"))


def refused(run: Cli, *arguments: str, status: int = 1) -> dict[str, str]:
    done = run("session", *arguments, "--json")
    assert (done.status, done.out) == (status, ""), done
    return done.error


def agent_saves(run: Cli, session_id: str, text: str) -> None:
    with gitmem.open_store(run.folder) as store:
        done = save(store.project("bot").session(session_id).render(["notes"]), text=text)
    assert done["status"] == "saved"


def test_a_session_is_created_with_its_bindings(run: Cli) -> None:
    made = session(run, "create", "--memory", "notes=workshop", "--memory", "plans")
    assert made["session"]["created"] is True
    assert made["session"]["memory"] == [
        {"resource": "notes", "scope": "document", "id": "workshop", "access": "read-write", "writable": True},
        {"resource": "plans", "scope": "collection", "access": "read", "writable": False},
    ]
    assert made["documents"] == []
    assert made["deployment"]["agentId"] == "tutor"
    assert made["session"]["deploymentId"] == made["deployment"]["id"]


@pytest.mark.parametrize(("suffix", "access"), [("", "read-write"), (":read", "read"), (":read-write", "read-write")])
def test_access_stands_behind_a_colon(run: Cli, suffix: str, access: str) -> None:
    made = session(run, "create", "--memory", f"notes=workshop{suffix}")
    assert made["session"]["memory"][0]["access"] == access


def test_documents_are_created_on_request_and_reported(run: Cli) -> None:
    arguments = ("create", "--memory", "notes=topic", "--memory", "plans=topic:read", "--idempotency-key", "topic/1")
    assert refused(run, *arguments, status=2)["code"] == "invalid_request"
    made = session(run, *arguments, "--create-document")
    assert made["documents"] == [
        {"resource": "notes", "id": "topic", "created": True},
        {"resource": "plans", "id": "topic", "created": True},
    ]
    again = session(run, *arguments, "--create-document")
    assert [each["created"] for each in again["documents"]] == [False, False]
    assert (again["session"]["id"], again["session"]["created"]) == (made["session"]["id"], False)
    assert json.loads(run.ok("show", "notes", "topic", "--json"))["title"] == "topic"


def test_in_words_it_says_what_was_created_and_what_existed(run: Cli) -> None:
    arguments = ("session", "create", "--memory", "notes=topic", "--create-document", "--idempotency-key", "k")
    first, second = run.ok(*arguments).splitlines(), run.ok(*arguments).splitlines()
    assert first[0] == "created notes/topic"
    assert second[0] == "existing notes/topic"
    assert first[1].removeprefix("created ") == second[1].removeprefix("existing ")
    assert first[1].endswith(" of tutor@development")


def test_the_command_does_what_the_helper_does(run: Cli) -> None:
    made = session(run, "create", "--memory", "notes=workshop", "--create-document", "--idempotency-key", "k")
    with gitmem.open_store(run.folder) as store:
        done = store.project("bot").environment().sessions.start_on_document(
            agent="tutor", resource="notes", document_id="workshop", document={"title": "x"}, idempotency_key="k"
        )  # fmt: skip
    assert done.session.id == made["session"]["id"]


def test_a_reserved_id_fails_before_any_session(run: Cli) -> None:
    run.ok("remove", "notes", "workshop")
    error = refused(run, "create", "--memory", "notes=workshop", "--create-document")
    assert error["code"] == "not_found"
    assert session(run, "list") == {"sessions": []}


def test_a_used_key_is_reported_as_reused(run: Cli) -> None:
    session(run, "create", "--memory", "notes=workshop", "--idempotency-key", "k")
    for binding in ("notes=workshop:read", "plans"):
        assert refused(run, "create", "--memory", binding, "--idempotency-key", "k")["code"] == "idempotency_key_reused"


@pytest.mark.parametrize(
    ("memory", "word"),
    [
        (["notes=missing"], "missing"),
        (["notes="], "memory.notes"),
        (["notes=workshop:write"], "'write'"),
        (["notes=workshop:read:read"], "'read:read'"),
        (["notes=work shop"], "'work shop'"),
        (["=workshop"], "''"),
        ([""], "''"),
        (["other"], "memory.other"),
        (["notes", "notes=workshop"], "twice"),
    ],
)
def test_a_refused_binding_is_named(run: Cli, memory: list[str], word: str) -> None:
    arguments = [part for each in memory for part in ("--memory", each)]
    assert word in refused(run, "create", *arguments, status=2)["message"]


def test_there_must_be_a_document_to_create(run: Cli) -> None:
    assert "--memory" in refused(run, "create", "--memory", "plans", "--create-document", status=2)["message"]


def test_the_agent_is_named_or_configured(run: Cli) -> None:
    run.ok("deploy", "--agent", "critic")
    assert session(run, "create")["session"]["agentId"] == "tutor"
    assert session(run, "create", "--agent", "critic")["session"]["agentId"] == "critic"
    assert refused(run, "create", "--agent", "nobody")["code"] == "not_found"


def test_sessions_are_listed_by_environment(run: Cli) -> None:
    run.ok("deploy", "--environment", "production")
    here = [session(run, "create", "--memory", "notes=workshop")["session"]["id"] for _ in range(2)]
    there = session(run, "create", "--environment", "production")["session"]["id"]
    assert [each["id"] for each in session(run, "list")["sessions"]] == here[::-1]
    assert [each["id"] for each in session(run, "list", "--environment", "production")["sessions"]] == [there]
    line = run.ok("session", "list").splitlines()[0]
    assert line.split()[0] == here[1]
    assert line.endswith("active  tutor  notes=workshop:read-write")


def test_a_session_is_shown_and_ended_whatever_the_environment(run: Cli) -> None:
    run.ok("deploy", "--environment", "production")
    made = session(run, "create", "--environment", "production")["session"]
    del made["created"]
    assert session(run, "show", made["id"]) == made
    ended = session(run, "end", made["id"])
    assert ended["status"] == "ended"
    assert session(run, "end", made["id"]) == session(run, "show", made["id"]) == ended
    assert ", ended 2" in run.ok("session", "show", made["id"])


def test_what_a_session_may_do_is_shown(run: Cli) -> None:
    made = session(run, "create", "--memory", "notes=workshop", "--memory", "plans")["session"]
    shown = run.ok("session", "show", made["id"])
    assert "notes=workshop:read-write  can be saved\n" in shown
    assert shown.endswith("is only read\n")
    run.ok("freeze", "notes", "workshop")
    assert "notes=workshop:read-write  cannot be saved now\n" in run.ok("session", "show", made["id"])


@pytest.mark.parametrize("command", ["show", "end", "events"])
@pytest.mark.parametrize("session_id", ["ses_1", "../x", "x\udcff"])
def test_an_unknown_session_is_not_found(run: Cli, command: str, session_id: str) -> None:
    assert refused(run, command, session_id)["code"] == "not_found"


def test_events_are_listed(run: Cli) -> None:
    made = session(run, "create", "--memory", "notes=workshop")["session"]
    assert run.ok("session", "events", made["id"]) == ""
    for text in ("1", "22"):
        agent_saves(run, made["id"], text)
    events = session(run, "events", made["id"])["events"]
    assert [(each["seq"], each["data"]["bytes"]) for each in events] == [(1, 1), (2, 2)]
    assert session(run, "events", made["id"], "--after", "1")["events"] == events[1:]
    lines = run.ok("session", "events", made["id"]).splitlines()
    assert lines[1] == f"2  notes/workshop  {events[1]['data']['revision']}  2 bytes"
    assert refused(run, "events", made["id"], "--after", "-1", status=2)["code"] == "invalid_request"


def test_following_tells_each_save_until_the_session_ends(run: Cli) -> None:
    made = session(run, "create", "--memory", "notes=workshop")["session"]
    command = os.path.join(os.path.dirname(sys.executable), "gitmem")
    following = subprocess.Popen(
        [command, "--store", str(run.folder), "session", "events", made["id"], "--follow", "--json"],
        stdout=subprocess.PIPE,
        env=clean_environment(),
        text=True,
    )
    assert following.stdout
    with following:
        for text in ("1", "22"):
            agent_saves(run, made["id"], text)
            assert json.loads(following.stdout.readline())["data"]["bytes"] == len(text)
        run.ok("session", "end", made["id"])
        assert following.stdout.read() == ""
        assert following.wait(60) == 0
