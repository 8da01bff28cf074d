"""The tools that a model is offered: their names, descriptions, JSON Schemas, and the check of arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gitmem.errors import ToolArgumentError
from gitmem.limits import SUMMARY_BYTES, shown

SAVE: Final = "memory_save"
LIST: Final = "memory_list"
READ: Final = "memory_read"

_ABOUT: Final = {
    SAVE: (
        "Replace the whole text of a memory document that you were shown. Give the complete new text: what you leave "
        "out is lost. Status conflict means that somebody saved first: merge your change into the text that it "
        "returns, in your next step."
    ),
    LIST: "List the documents of a memory, newest first, without their texts.",
    READ: "Read one document of a memory.",
}
_MEMORY: Final = "Which memory."
_FIELDS: Final[dict[str, dict[str, str]]] = {
    SAVE: {
        "text": "The complete new text.",
        "summary": f"One line on what the document holds, at most {SUMMARY_BYTES} bytes. Leave it out to keep it.",
    },
    LIST: {"cursor": "The nextCursor of the page before. Leave it out for the first page; null was the last one."},
    READ: {"id": "The document's id, as listed."},
}
_REQUIRED: Final = {SAVE: ("text",), LIST: (), READ: ("id",)}


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolSpec:
    """One tool: what a model is told of it, and the JSON Schema of its arguments."""

    name: str
    description: str
    input_schema: dict[str, Any]

    def anthropic(self) -> dict[str, Any]:
        """The tool for Anthropic's Messages API."""
        return {"name": self.name, "description": self.description, "input_schema": self.input_schema}

    def openai(self) -> dict[str, Any]:
        """The tool for OpenAI's Chat Completions API, and those that follow it."""
        function = {"name": self.name, "description": self.description, "parameters": self.input_schema}
        return {"type": "function", "function": function}

    def mcp(self) -> dict[str, Any]:
        """The tool for the Model Context Protocol."""
        return {"name": self.name, "description": self.description, "inputSchema": self.input_schema}


class Tools(tuple[ToolSpec, ...]):
    """The tools of one render, in the shapes that hosts pass on."""

    __slots__ = ()

    def anthropic(self) -> list[dict[str, Any]]:
        """As `tools` of Anthropic's Messages API."""
        return [spec.anthropic() for spec in self]

    def openai(self) -> list[dict[str, Any]]:
        """As `tools` of OpenAI's Chat Completions API."""
        return [spec.openai() for spec in self]

    def mcp(self) -> list[dict[str, Any]]:
        """As the answer to the Model Context Protocol's `tools/list`."""
        return [spec.mcp() for spec in self]


def spec(name: str, guidance: Mapping[str, str]) -> ToolSpec:
    """A tool for the resources that `guidance` describes, which are all that it can be used on.

    Descriptions hold what deployments declare, and nothing of what documents hold.
    """
    properties: dict[str, Any] = {"memory": {"type": "string", "enum": list(guidance), "description": _MEMORY}}
    for field, about in _FIELDS[name].items():
        properties[field] = {"type": "string", "description": about}
    required = (("memory",) if len(guidance) > 1 else ()) + _REQUIRED[name]
    return ToolSpec(
        name=name,
        description="\n".join((_ABOUT[name], "", "Memory:", *(f"- {id}: {about}" for id, about in guidance.items()))),
        input_schema={
            "type": "object",
            "properties": properties,
            "required": list(required),
            "additionalProperties": False,
        },
    )


def checked(name: object, arguments: object) -> dict[str, str]:
    """The arguments of a call, every one a string. Raises ToolArgumentError for any that the tool does not take."""
    if not isinstance(name, str) or name not in _FIELDS:
        raise ToolArgumentError(f"There is no tool {shown(name)}. There are {', '.join(_FIELDS)}.")
    if not isinstance(arguments, Mapping):
        raise ToolArgumentError(f"The arguments of {name} must be a JSON object.")
    known = ("memory", *_FIELDS[name])
    for field, value in arguments.items():
        if field not in known:
            raise ToolArgumentError(f"{name} takes no argument {shown(field)}, only {', '.join(known)}.")
        if not isinstance(value, str):
            raise ToolArgumentError(f"{field} must be a string, not {shown(value)}.")
        if not value.isascii() and not _is_text(value):
            raise ToolArgumentError(f"{field} holds a lone surrogate, which is not text. Remove it.")
    if missing := [field for field in _REQUIRED[name] if field not in arguments]:
        raise ToolArgumentError(f"{name} needs the argument {missing[0]}.")
    return dict(arguments)


def chosen(name: str, arguments: Mapping[str, str], eligible: Sequence[str]) -> str | None:
    """The resource that a call is about; None where it names none and there is none to choose.

    Raises ToolArgumentError where it names none of several.
    """
    named = arguments.get("memory")
    if named is not None or not eligible:
        return named
    if len(eligible) > 1:
        raise ToolArgumentError(f"{name} needs the argument memory: one of {', '.join(eligible)}.")
    return eligible[0]


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
