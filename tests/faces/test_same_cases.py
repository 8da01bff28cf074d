"""The same cases through the store, the client and the command line, here and on a server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitmem import GitmemError
from tests.faces.faces import Face, Refused

MODULE = """
import gitmem
notes = gitmem.define_memory(id="notes", description="Decisions.", provider=gitmem.document_memory(max_bytes=10))
plans = gitmem.define_memory(id="plans", description="What comes next.")
"""


def refused(code: str, call: Callable[..., Any], *arguments: Any, **fields: Any) -> str:
    """The message of a refusal, which must have this code."""
    with pytest.raises((Refused, GitmemError)) as caught:
        call(*arguments, **fields)
    assert caught.value.code == code, caught.value
    return str(caught.value.message)


def test_a_document_is_made_changed_and_deleted(face: Face) -> None:
    made = face.create("workshop", title="Workshop", text="Node 20.\n", summary="S")
    assert {key: made[key] for key in ("id", "title", "text", "summary", "agentWrites", "bytes", "maxBytes")} == {
        "id": "workshop", "title": "Workshop", "text": "Node 20.\n", "summary": "S", "agentWrites": "enabled",
        "bytes": 9, "maxBytes": 8192,
    }  # fmt: skip
    assert made["writer"] == {"kind": "owner"}
    assert face.show("workshop") == made
    edited = face.edit("workshop", text="Node 22 — é\n", if_match=made["revision"])
    assert (edited["summary"], edited["bytes"]) == ("S", 15)
    assert face.edit("workshop", text="Node 22 — é\n", summary="")["summary"] == ""
    assert face.retitle("workshop", "Anew")["title"] == "Anew"
    assert face.freeze("workshop")["agentWrites"] == "disabled"
    assert face.unfreeze("workshop")["agentWrites"] == "enabled"
    assert face.show("workshop", revision=made["revision"]) == made
    (listed,) = face.list()["documents"]
    assert listed == {key: value for key, value in face.show("workshop").items() if key != "text"}
    assert face.remove("workshop") == {"resource": "notes", "id": "workshop", "deleted": True}
    assert face.list() == {"documents": []}


def test_refusals_have_the_same_codes(face: Face) -> None:
    made = face.create("a", title="A")
    assert made["revision"] in refused("precondition_failed", face.create, "a", title="Again")
    face.edit("a", text="1")
    refused("precondition_failed", face.edit, "a", text="2", if_match=made["revision"])
    refused("precondition_failed", face.edit, "a", text="2", if_match="no revision")
    refused("precondition_failed", face.retitle, "a", "B", if_match=made["revision"])
    refused("precondition_failed", face.remove, "a", if_match=made["revision"])
    refused("not_found", face.show, "missing")
    refused("not_found", face.edit, "missing", text="1", if_match=made["revision"])
    refused("not_found", face.log, "missing")
    refused("not_found", face.diff, "missing")
    refused("not_found", face.show, "a", revision="0" * 40)
    refused("not_found", face.restore, "a", "0" * 40)
    for wrong in ("no revision", "ABCDEF1", "1234", "--output=x"):
        refused("invalid_request", face.show, "a", revision=wrong)
        refused("invalid_request", face.restore, "a", wrong)
        refused("invalid_request", face.diff, "a", wrong)
    for wrong in ("", "a.b", "../a", "a/b", "ä", "%2e", "a" * 129, "a\n", "a b"):
        refused("invalid_request", face.show, wrong)
        refused("invalid_request", face.create, wrong, title="A")
    refused("invalid_request", face.create, "b", title="")
    refused("memory_limit_exceeded", face.create, "b", title="é" * 121)
    refused("memory_limit_exceeded", face.create, "b", title="B", summary="s" * 241)
    assert "8192" in refused("memory_limit_exceeded", face.create, "b", title="B", text="t" * 8193)
    refused("memory_limit_exceeded", face.edit, "a", text="é" * 4097)
    face.remove("a")
    for call in (face.show, face.freeze, face.remove):
        refused("not_found", call, "a")
    assert "deleted" in refused("precondition_failed", face.create, "a", title="Again")


def test_what_a_text_holds_comes_back_as_it_is(face: Face) -> None:
    for number, text in enumerate(("", "\n", "a\r\nb\r\n", "\ufeffx", "\x00\x01\x7f", "\u2028\u2029", "𝒳\n\n", '"\\')):
        made = face.create(f"-t{number}", title="|\t'\"<b>", text=text)
        assert (made["text"], made["title"]) == (text, "|\t'\"<b>")
        assert face.show(f"-t{number}")["text"] == text


def test_history_is_told_and_brought_back(face: Face) -> None:
    first = face.create("a", title="One", text="1\n")
    second = face.edit("a", text="2\n", summary="two")
    third = face.retitle("a", "Three")
    versions = face.log("a")["versions"]
    assert [(v["operation"], v["title"], v["bytes"]) for v in versions] == [
        ("retitle", "Three", 2), ("replace", "One", 2), ("create", "One", 2),
    ]  # fmt: skip
    assert [v["revision"] for v in versions] == [third["revision"], second["revision"], first["revision"]]
    assert "-title: One\n+title: Three\n" in face.diff("a")["diff"]
    whole = face.diff("a", first["revision"][:9], third["revision"])["diff"]
    assert whole.startswith(f"--- notes/a@{first['revision'][:12]}\n+++ notes/a@{third['revision'][:12]}\n")
    assert "-1\n+2\n" in whole
    assert face.diff("a", third["revision"], third["revision"]) == {"diff": ""}
    assert "+++ notes/a@" in face.diff("a", first["revision"])["diff"]
    assert face.restore("a", first["revision"][:7])["text"] == "1\n"
    assert face.show("a")["title"] == "One"
    face.remove("a")
    assert [v["operation"] for v in face.log("a")["versions"]] == ["delete", "restore", "retitle", "replace", "create"]
    assert "-title: One\n" in face.diff("a")["diff"]
    gone = face.log("a")["versions"][0]["revision"]
    refused("not_found", face.show, "a", revision=gone)


def test_resources_deployments_and_limits(face: Face, tmp_path: Path) -> None:
    face.create("a", title="A", text="more than ten")
    module = tmp_path / "memory.py"
    module.write_text(MODULE)
    deployed = face.deploy("tutor", module)
    assert (deployed["agentId"], deployed["alias"]) == ("tutor", "development")
    notes, plans = face.resources()["resources"]
    assert notes == {"id": "notes", "provider": {"kind": "document", "maxBytes": 10}, "declared": True, "documents": 1}
    assert (plans["id"], plans["documents"]) == ("plans", 0)
    refused("memory_limit_exceeded", face.edit, "a", text="still too long")
    assert face.retitle("a", "B")["maxBytes"] == 10
    module.write_text(MODULE.replace('"notes"', '"other"'))
    face.deploy("tutor", module)
    assert [(r["id"], r["declared"]) for r in face.resources()["resources"]] == [
        ("notes", False), ("other", True), ("plans", True),
    ]  # fmt: skip
    assert face.show("a")["text"] == "more than ten"


def test_an_export_has_the_same_files(face: Face, tmp_path: Path) -> None:
    made = [face.create(name, title=name, text=f"{name}\n") for name in ("a", "b")]
    face.create("gone", title="G")
    face.remove("gone")
    out = tmp_path / "out"
    assert face.export(out) == {"out": str(out), "documents": 2, "leftOut": []}
    assert [json.loads((out / "notes" / f"{name}.json").read_text()) for name in ("a", "b")] == made
    assert len(list((out / "notes").iterdir())) == 2
    refused("not_found", face.export, out, "nothing")


def test_sessions_start_once_and_end(face: Face) -> None:
    started = face.start("notes=workshop", key="topic/é/1", create=True)
    session = started["session"]
    assert (session["created"], session["status"]) == (True, "active")
    assert started["documents"] == [{"resource": "notes", "id": "workshop", "created": True}]
    assert started["deployment"]["agentId"] == "tutor"
    (state,) = session["memory"]
    assert state == {
        "resource": "notes", "scope": "document", "id": "workshop", "access": "read-write", "writable": True,
    }  # fmt: skip
    again = face.start("notes=workshop", key="topic/é/1", create=True)
    assert (again["session"]["id"], again["session"]["created"]) == (session["id"], False)
    assert again["documents"][0]["created"] is False
    refused("idempotency_key_reused", face.start, "notes=other", key="topic/é/1", create=True)
    assert face.show("other")["title"] == "other"
    # The same key, given directly, is another one.
    assert face.start("notes=workshop", key="topic/é/1")["session"]["id"] != session["id"]
    refused("invalid_request", face.start, "notes=missing")
    refused("invalid_request", face.start, "plans")
    refused("invalid_request", face.start, "notes=workshop", key="")
    face.freeze("workshop")
    assert face.session(session["id"])["memory"][0]["writable"] is False
    assert face.end(session["id"])["status"] == "ended"
    assert face.end(session["id"]) == face.session(session["id"])
    assert [found["status"] for found in face.sessions()["sessions"]].count("ended") == 1
    assert face.events(session["id"]) == {"events": []}
    for call in (face.session, face.end, face.events):
        refused("not_found", call, "ses_" + "0" * 26)
        refused("not_found", call, "nothing")
    face.remove("workshop")
    refused("not_found", face.start, "notes=workshop", key="another", create=True)
