"""What is checked before an operation runs, and in which order.

What the request alone shows comes before what the store knows, but for who asks and for which
project: a stranger learns nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from gitmem.errors import InvalidRequestError, OrganizationNotFoundError, ProjectNotFoundError
from gitmem.http import bodies, conditions
from gitmem.http.callers import authenticated, authorize
from gitmem.http.operations import Call, Condition, Operation
from gitmem.limits import shown

Check = Callable[[Call], Awaitable[None] | None]


@dataclass(frozen=True, slots=True)
class Checks:
    """The checks that apply to an operation: of who asks, then of the rest.

    `again` are those of the rest that a request must pass although its path and query were found
    right before, as those of an answer that is kept.
    """

    who: Sequence[Check]
    rest: Sequence[Check]
    again: Sequence[Check]


def checks_of(operation: Operation) -> Checks:
    """The checks that apply to an operation, in their order."""
    found = [check for check, applies, _ in ORDER if applies(operation)]
    return Checks(
        who=[check for check in found if check in {_who, _may}],
        rest=[check for check in found if check not in {_who, _may}],
        again=[check for check in found if check is _condition],
    )


def _who(call: Call) -> None:
    call.caller = authenticated(call.serving, call.headers)


def _may(call: Call) -> None:
    assert call.operation.access is not None
    authorize(call.caller, call.operation.access, call.project_id, for_members=call.operation.for_members)


def _project(call: Call) -> None:
    if call.project_id is None:
        return
    try:
        call.found(call.serving.project(call.project_id))
    except ProjectNotFoundError:
        if "orgId" not in call.path:
            raise
        raise OrganizationNotFoundError(f"There is no organisation {shown(call.project_id)}.") from None


def _parameters(call: Call) -> None:
    for parameter in call.operation.query:
        value = call.parameter(parameter.name)
        if value is not None:
            parameter.check(value)
        elif parameter.required:
            raise InvalidRequestError(f"The query must have {parameter.name}: {parameter.about}")
    for parameter in call.operation.ids:
        parameter.check(call.path[parameter.name])
    for parameter in call.operation.headers:
        value = call.header(parameter.name)
        if value is not None:
            parameter.check(value)


def _media_type(call: Call) -> None:
    if not _has_left_it_out(call):
        bodies.check_media_type(call.headers)


async def _size(call: Call) -> None:
    call.body = await bodies.read(call.receive, call.headers, limit=call.operation.body_bytes)


def _syntax(call: Call) -> None:
    call.body = {} if _has_left_it_out(call) else bodies.parse(call.body)


def _has_left_it_out(call: Call) -> bool:
    return call.operation.bodiless and bodies.is_absent(call.headers)


def _condition(call: Call) -> None:
    lines = call.headers.get("if-match", ()), call.headers.get("if-none-match", ())
    match call.operation.condition:
        case Condition.READ:
            call.seen = conditions.to_read(*lines)
        case Condition.CHANGE:
            call.revisions = conditions.to_change(*lines)
        case Condition.PUT:
            call.revisions = conditions.to_put(*lines)


def _fields(call: Call) -> None:
    kind = call.operation.create if call.revisions is None else call.operation.body
    assert kind is not None
    call.body = bodies.decode(call.body, kind)


def _has_key(operation: Operation) -> bool:
    return operation.access is not None


def _has_parameters(operation: Operation) -> bool:
    return bool(operation.query or operation.ids or operation.headers)


def _has_body(operation: Operation) -> bool:
    return operation.body is not None


def _has_condition(operation: Operation) -> bool:
    return operation.condition is not Condition.NONE


ORDER: Final[tuple[tuple[Check, Callable[[Operation], bool], str], ...]] = (
    (_who, _has_key, "401"),
    (_may, _has_key, "403"),
    (_project, _has_key, "404 project_not_found"),
    (_parameters, _has_parameters, "400: environment, ids, cursor"),
    (_media_type, _has_body, "415"),
    (_size, _has_body, "413: the body"),
    (_syntax, _has_body, "400: not JSON"),
    (_condition, _has_condition, "428, 400"),
    (_fields, _has_body, "400: fields of the body"),
)
"""Each check, the operations that it applies to, and what it answers. Behind them the library checks
the limits of fields (413), that the document exists (404), and its revision (412), the last two in
one with the write."""
