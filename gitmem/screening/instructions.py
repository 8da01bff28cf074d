"""Instructions aimed at a later session: hidden text, chat markup, and sentences that take over whoever reads them.

A habit alone ("always", "never") is no reason to refuse. A sentence is one where it joins persistence
with exfiltration, privilege or execution, or concealment with an action; what it quotes does not count.
"""

from __future__ import annotations

import re
from typing import Final

from gitmem.screening.findings import Span
from gitmem.screening.views import views

_HIDDEN: Final = re.compile(
    r"(?<!\U0001f3f4)[\U000e0020-\U000e007e]{6,}|[\U000e0100-\U000e01ef]{4,}"
    r"|[\u200b-\u200d\u2060-\u2064]{5,}|[\u202d\u202e]|[\u2066\u2067][\x20-\x7e]{1,80}\u2069"
)
_MARKUP: Final = re.compile(
    r"<\|(?:im_start|im_end|system|user|assistant|start_header_id|end_header_id|eot_id)\|>"
    r"|\[INST\].{0,400}\[/INST\]|<<SYS>>"
    r"|</?(?:system|instructions|tool_call|function_calls|tool_result)>|^\s{0,4}\{\"role\": ?\"system\""
)
_CARRIER: Final = re.compile(
    r"\]\([^\s)]{0,400} \"(?P<title>[^\"]{0,400})\"\)|display: ?none[^>]{0,80}>(?P<none>.{0,400})"
)
_ADDRESSED: Final = re.compile(r"\b(?:assistant|agents?|ai|llm|language model|claude|chatgpt|copilot)\b")
_QUOTED: Final = re.compile(r"\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|(?<!\w)'[^'\n]{1,300}'(?!\w)|„[^“\n]{1,300}“")
_SENTENCE: Final = re.compile(r"[.!?](?:\s+|$)|\n")
_OVERRIDE: Final = re.compile(
    r"\b(?:ignore|disregard|forget|override)\s{1,3}(?:(?:all|any|every|of|the|your|my|these|everything)\s{1,3}){0,3}"
    r"(?:(?:previous|prior|earlier|above|preceding|former|system|safety)\s{1,3}(?:instructions?|prompts?"
    r"|directives?|guidelines|guidance)|(?:above|before this))\b"
)
_TAKEOVER: Final = re.compile(
    r"\byou are now (?:an? )?(?:unrestricted|dan\b|free|root)|\breveal (?:the|your) (?:system|hidden) prompt"
    r"|\byour (?:previous|prior|old|earlier) (?:rules|instructions)\b.{0,30}\bno longer apply"
    r"|\btakes? precedence over everything you were told"
)
_PERSISTS: Final = re.compile(
    r"\b(?:always|permanently|from now on|going forward|standing order|henceforth)\b"
    r"|\b(?:every|each|all|any|future|later)\s{1,3}(?:(?:future|later|coming|new|following)\s{1,3})?"
    r"(?:sessions?|conversations?|tasks?|runs?|times?|e-?mails?|documents?|requests?)\b|\bwhenever you\b"
)
_EXFILTRATES: Final = re.compile(
    r"\b(?:send|post|upload|forward|transmit|leak|exfiltrate|append|copy|mail|email)\b.{0,120}"
    r"\b(?:conversation|chat history|cookies?|credentials?|api keys?|tokens?|passwords?|secrets?|\.env|id_rsa"
    r"|(?:new )?documents?|e-?mails?|mails?|memory)\b"
    r".{0,80}(?:https?://|\b[\w.+-]{1,64}@|\bto [\w-]{1,40}\.[a-z]{2,})"
)
_PRIVILEGE: Final = re.compile(
    r"\b(?:grant|give|treat)\b.{0,60}\b(?:admin(?:istrator)?|root|owner rights|access to all)\b"
    r"|\b(?:disable|bypass|skip|turn off)\b.{0,60}\b(?:sandbox|approvals?|confirmations?|permission|safety)\b"
    r"|\bapproval step is disabled"
)
_EXECUTES: Final = re.compile(
    r"\b(?:curl|wget|pipe|fetch)\b.{0,120}(?:\|\s{0,3}|\binto )(?:ba|z)?sh\b|\bexecute the script at\b"
)
_RISKY: Final = re.compile(
    r"send|post|upload|forward|transmit|leak|exfil|append|copy|mail|grant|give|treat|disable|bypass|skip"
    r"|turn off|curl|wget|pipe|fetch|execute"
)
_CONCEALS: Final = re.compile(
    r"\b(?:do not|don't|never|without)\b.{0,24}\b(?:tell(?:ing)?|mention(?:ing)?|inform(?:ing)?|notify(?:ing)?"
    r"|let(?:ting)?)\b"
    r".{0,24}\b(?:user|owner|it|anyone)\b|\b(?:secretly|quietly|behind the (?:user|owner)'s back|say nothing"
    r"|keep this from)\b"
)
_ACTS: Final = re.compile(
    r"\b(?:send|upload|forward|copy|delete|execute|run|replace|changed?|push|transfer|post|call)\b"
    r".{0,100}\b(?:user|owner|files?|e-?mails?|mail|https?|script|account|address|repository|tool|repo)\b|\.ssh\b"
)


def instructions(text: str) -> list[Span]:
    """Every line that reads as such an instruction, then every comment."""
    found = _comments(text)
    start = 0
    for line in text.split("\n"):
        kind = _kind(line)
        if kind:
            found.append(Span(kind, start, start + len(line)))
        start += len(line) + 1
    return found


def _kind(line: str) -> str | None:
    if not line.isascii() and _HIDDEN.search(line):
        return "hidden-text"
    if _MARKUP.search(line):
        return "chat-markup"
    for number, view in enumerate(views(line)):
        lowered = view.lower()
        if _carries(lowered):
            return "hidden-instructions"
        kind = _said(_QUOTED.sub(" ", lowered))
        if kind:
            return kind if number == 0 else f"disguised-{kind}"
    return None


def _comments(text: str) -> list[Span]:
    """The HTML comments, over several lines too, that tell an agent to do something."""
    found = []
    end = 0
    while (start := text.find("<!--", end)) >= 0 and (end := text.find("-->", start)) >= 0:
        if _tells(text[start:end].lower()):
            found.append(Span("hidden-instructions", start, end))
    return found


def _carries(line: str) -> bool:
    if "](" not in line and "display:" not in line:
        return False
    return any(_tells(match["title"] or match["none"] or "") for match in _CARRIER.finditer(line))


def _tells(hidden: str) -> bool:
    return bool(_ADDRESSED.search(hidden) and (_ACTS.search(hidden) or _EXFILTRATES.search(hidden) or _said(hidden)))


def _said(text: str) -> str | None:
    for sentence in _SENTENCE.split(text):
        if not sentence:
            continue
        if _OVERRIDE.search(sentence) or _TAKEOVER.search(sentence):
            return "override"
        if _RISKY.search(sentence) and _PERSISTS.search(sentence):
            for kind, expression in (
                ("exfiltration", _EXFILTRATES),
                ("privilege", _PRIVILEGE),
                ("execution", _EXECUTES),
            ):
                if expression.search(sentence):
                    return f"standing-{kind}"
        if _CONCEALS.search(sentence) and _ACTS.search(sentence):
            return "concealment"
    return None
