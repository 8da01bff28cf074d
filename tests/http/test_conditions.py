"""If-Match and If-None-Match in every form that arrives (HAZARDS "Faces")."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gitmem.errors import InvalidRequestError, PreconditionRequiredError
from gitmem.http import conditions
from tests.http.server import Api, Server, raw, refused

CHANGES = [("PUT", {"text": "x"}), ("PATCH", {"title": "x"}), ("DELETE", None)]


@pytest.mark.parametrize(("method", "body"), CHANGES)
def test_a_missing_condition_is_428(api: Api, unique: str, method: str, body: dict[str, str] | None) -> None:
    api.created(unique)
    refused(api(method, unique, body), 428, "precondition_required")
    refused(api(method, "missing", body), 428, "precondition_required")


@pytest.mark.parametrize(("method", "body"), CHANGES)
@pytest.mark.parametrize(
    "match",
    [
        "",
        "*",
        "abc",
        '"abc',
        'abc"',
        '"a" "b"',
        '"a",b',
        'w/"a"',
        'W/ "a"',
        "'a'",
        '"a b"',
        '"a"x',
        ",",
        '"a"; "b"',
    ],
)
def test_an_unreadable_if_match_is_400(
    api: Api, unique: str, method: str, body: dict[str, str] | None, match: str
) -> None:
    before = api.created(unique)
    refused(api(method, unique, body, match=match), 400, "invalid_request")
    assert api.read(unique) == before


@pytest.mark.parametrize(("method", "body"), CHANGES)
def test_conditions_of_the_wrong_kind_or_of_both_kinds_are_400(
    api: Api, unique: str, method: str, body: dict[str, str] | None
) -> None:
    tag = f'"{api.created(unique)["revision"]}"'
    refused(api(method, unique, body, match=tag, none_match="*"), 400, "invalid_request")
    refused(api(method, unique, body, match=tag, none_match='"x"'), 400, "invalid_request")
    for none_match in (tag, '"x"', "", "**", '*, "x"', *(["*"] if method != "PUT" else [])):
        refused(api(method, unique, body, none_match=none_match), 400, "invalid_request")
    assert f'"{api.read(unique)["revision"]}"' == tag


def test_any_of_a_list_may_match(api: Api, unique: str) -> None:
    tag = f'"{api.created(unique)["revision"]}"'
    for spelled in ('"x", {}', '{},"y"', ', "a" ,,\t{} ,', 'W/"x", {}'):
        answer = api("PUT", unique, {"text": spelled}, match=spelled.format(tag))
        assert answer.status_code == 200, spelled
        tag = answer.headers["etag"]
    refused(api("PUT", unique, {"text": "x"}, match='"x", "y"'), 412, "precondition_failed")


def test_several_header_lines_are_one_list(api: Api, server: Server, unique: str) -> None:
    tag = f'"{api.created(unique)["revision"]}"'
    lines = [("If-Match", '"x"'), ("If-Match", tag)]
    answer = api("PUT", unique, {"text": "1"}, headers=lines)
    assert answer.status_code == 200
    refused(api("PUT", unique, {"text": "2"}, headers=lines), 412, "precondition_failed")
    mixed = [("If-Match", answer.headers["etag"]), ("If-Match", "unquoted")]
    refused(api("PUT", unique, {"text": "2"}, headers=mixed), 400, "invalid_request")
    head = f"DELETE {api.documents}/{unique}?environment=development HTTP/1.1\r\nHost: localhost\r\n"
    sent = f'{head}if-match: "x"\r\nIF-MATCH:{answer.headers["etag"]}\r\nConnection: close\r\n\r\n'
    assert raw(server.port, sent.encode())[0] == 204


def test_a_weak_tag_never_matches_a_change(api: Api, unique: str) -> None:
    tag = f'"{api.created(unique)["revision"]}"'
    for method, body in CHANGES:
        refused(api(method, unique, body, match=f"W/{tag}"), 412, "precondition_failed")
        refused(api(method, "missing", body, match=f"W/{tag}"), 404, "not_found")


def test_a_reader_who_has_it_gets_304(api: Api, unique: str) -> None:
    tag = f'"{api.created(unique)["revision"]}"'
    for none_match in (tag, f"W/{tag}", f'"x", {tag}', "*"):
        for _ in range(2):
            answer = api("GET", unique, none_match=none_match)
            assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)
    assert api("GET", unique, none_match='"x"').status_code == 200
    lines = [("If-None-Match", '"x"'), ("If-None-Match", tag)]
    assert api("GET", unique, headers=lines).status_code == 304
    refused(api("GET", "missing", none_match="*"), 404, "not_found")
    api("PUT", unique, {"text": "changed"}, match=tag)
    assert api("GET", unique, none_match=tag).status_code == 200


@pytest.mark.parametrize("none_match", ["", "abc", '"abc', '*, "a"'])
def test_a_reader_s_unreadable_condition_is_400(api: Api, unique: str, none_match: str) -> None:
    api.created(unique)
    refused(api("GET", unique, none_match=none_match), 400, "invalid_request")
    refused(api("GET", unique, match='"a"'), 400, "invalid_request")


def test_no_answer_is_compressed(api: Api, unique: str) -> None:
    api.created(unique, text="x" * 8000)
    answer = api("GET", unique, headers=[("Accept-Encoding", "gzip, br, zstd")])
    assert "content-encoding" not in answer.headers
    assert api("PUT", unique, {"text": "y"}, match=answer.headers["etag"]).status_code == 200


tags = st.text(st.characters(codec="latin-1", exclude_characters='"', min_codepoint=0x21, exclude_categories=["Cc"]))
marks = st.sampled_from(["", "W/"])
gaps = st.sampled_from([",", " , ", ",,", "\t,", ", ,"])


@given(st.lists(st.tuples(marks, tags, gaps), min_size=1), st.data())
def test_every_list_of_tags_is_read_back(members: list[tuple[str, str, str]], data: st.DataObject) -> None:
    spelled = [f'{mark}"{tag}"' for mark, tag, _ in members]
    lines, line = [], ""
    for text, (_, _, gap) in zip(spelled, members, strict=True):
        line += text
        if data.draw(st.booleans()):
            lines.append(line)
            line = ""
        else:
            line += gap
    lines += [line] if line else []
    assert conditions.to_change(lines, []) == tuple(mark + tag for mark, tag, _ in members)


@given(st.lists(st.text(st.characters(codec="latin-1")), max_size=3), st.lists(st.text(max_size=8), max_size=3))
def test_any_header_is_read_or_refused(match: list[str], none_match: list[str]) -> None:
    for reading in (conditions.to_put, conditions.to_change, conditions.to_read):
        with suppress(InvalidRequestError, PreconditionRequiredError):
            reading(match, none_match)
