"""The operations on memory files (seed 003): an organisation is a project, and the caller a member of it."""

from __future__ import annotations

import os
from typing import cast

from msgspec import UNSET

from gitmem.errors import InvalidRequestError
from gitmem.filepaths import Scope, check_scope
from gitmem.files import ANYTHING, Expected, Files, Role
from gitmem.http.answers import Answer, as_json
from gitmem.http.callers import NOBODY_ASKED
from gitmem.http.operations import Call


def put(call: Call) -> Answer:
    body = call.body
    return as_json(
        _files(call)
        .put(body.scope, body.path, body.content, expected_revision_id=_expected(body.expected_revision_id))
        .to_json()
    )


def read(call: Call) -> Answer:
    return as_json(_files(call).read(_scope(call), _path(call), at=call.parameter("revision")).to_json())


def list_files(call: Call) -> Answer:
    return as_json(_files(call).list(_scope(call), cursor=call.parameter("cursor")).to_json())


def history(call: Call) -> Answer:
    return as_json(_files(call).history(_scope(call), _path(call), cursor=call.parameter("cursor")).to_json())


def restore(call: Call) -> Answer:
    body = call.body
    return as_json(
        _files(call)
        .restore(body.scope, body.path, body.revision_id, expected_revision_id=_expected(body.expected_revision_id))
        .to_json()
    )


def remove(call: Call) -> Answer:
    expected = call.parameter("expected_revision_id")
    _files(call).remove(_scope(call), _path(call), expected_revision_id=ANYTHING if expected is None else expected)
    return Answer(204)


def context(call: Call) -> Answer:
    return as_json({"files": [file.to_json() for file in _files(call).context()]})


def read_switch(call: Call) -> Answer:
    if _scope(call) != "personal":
        raise InvalidRequestError("Only personal memory can be off: scope must be personal.")
    return as_json({"scope": "personal", "enabled": _files(call).is_enabled()})


def switch(call: Call) -> Answer:
    files = _files(call)
    files.enable(call.body.enabled)
    return as_json({"scope": "personal", "enabled": files.is_enabled()})


def _files(call: Call) -> Files:
    # Where no key was made, whoever started the server may say whose personal memory it serves.
    member = os.environ.get("GITMEM_MEMBER") or None if call.caller is NOBODY_ASKED else call.caller.member
    return call.project.files(member=member, role=cast(Role, call.caller.role))


def _scope(call: Call) -> Scope:
    return check_scope(call.parameter("scope"))


def _path(call: Call) -> str:
    return call.parameter("path") or ""


def _expected(value: object) -> str | Expected | None:
    return ANYTHING if value is UNSET else cast("str | None", value)
