"""Formats of secrets that the detector does not know; every expression is bounded."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from gitmem.screening.findings import Span


class _Format(NamedTuple):
    """`marker` is a literal that every match holds: without it in the text the expression is not tried."""

    kind: str
    marker: str
    expression: re.Pattern[str]


_FORMATS: Final = (
    _Format("age-secret-key", "AGE-SECRET-KEY-1", re.compile(r"\bAGE-SECRET-KEY-1[0-9A-Z]{58}\b")),
    _Format(
        "slack-webhook", "hooks.slack.com/", re.compile(r"hooks\.slack\.com/services/T\w{6,12}/B\w{6,12}/\w{20,32}")
    ),
    _Format(
        "discord-webhook", "/api/webhooks/", re.compile(r"discord(?:app)?\.com/api/webhooks/\d{17,20}/[\w-]{60,72}")
    ),
    _Format("twilio-api-key", "SK", re.compile(r"\bSK[0-9a-f]{32}\b")),
    _Format("airtable-token", "pat", re.compile(r"\bpat[A-Za-z0-9]{14}\.[0-9a-f]{64}\b")),
    _Format("asana-token", "2/", re.compile(r"\b2/\d{13,17}/\d{13,17}:[0-9a-f]{32}\b")),
    _Format("bitbucket-app-password", "ATBB", re.compile(r"\bATBB[A-Za-z0-9]{28,36}\b")),
    _Format("contentful-token", "CFPAT-", re.compile(r"\bCFPAT-[\w-]{43}(?![\w-])")),
    _Format("frame-io-token", "fio-u-", re.compile(r"\bfio-u-[\w-]{64}(?![\w-])")),
    _Format("typeform-token", "tfp_", re.compile(r"\btfp_[\w.-]{40,64}(?![\w-])")),
    _Format("duffel-token", "duffel_", re.compile(r"\bduffel_(?:live|test)_[\w-]{43}(?![\w-])")),
    _Format("prefect-key", "pnu_", re.compile(r"\bpnu_[a-z0-9]{36}\b")),
    _Format("readme-io-key", "rdme_", re.compile(r"\brdme_[a-z0-9]{70}\b")),
    _Format("shippo-token", "shippo_", re.compile(r"\bshippo_(?:live|test)_[0-9a-f]{40}\b")),
    _Format("brevo-key", "xkeysib-", re.compile(r"\bxkeysib-[0-9a-f]{64}-[A-Za-z0-9]{16}\b")),
    _Format("artifactory-key", "AKCp", re.compile(r"\bAKCp[A-Za-z0-9]{69}\b")),
    _Format("fly-token", "fo1_", re.compile(r"\bfo1_[\w-]{43}(?![\w-])")),
    _Format("tailscale-key", "tskey-", re.compile(r"\btskey-[a-z]{3,12}-[A-Za-z0-9]{10,24}-[A-Za-z0-9]{24,48}\b")),
    _Format("yandex-cloud-key", "AQVN", re.compile(r"\bAQVN[\w-]{35,38}(?![\w-])")),
    _Format("tencent-key", "AKID", re.compile(r"\bAKID[A-Za-z0-9]{32}\b")),
    _Format("facebook-token", "EAAC", re.compile(r"\bEAAC[A-Za-z0-9]{80,300}\b")),
    _Format("adafruit-key", "aio_", re.compile(r"\baio_[A-Za-z0-9]{28}\b")),
    _Format(
        "putty-private-key",
        "PuTTY-User-Key-File-",
        re.compile(r"PuTTY-User-Key-File-[23]: [^\n]{1,80}\n(?:[^\n]{0,200}\n){1,60}?Private-Lines: \d"),
    ),
    _Format("azure-sas-signature", "sig=", re.compile(r"[?&;]sig=[A-Za-z0-9%+/]{40,80}")),
    _Format(
        "netrc-password",
        "machine ",
        re.compile(
            r"\bmachine\s{1,4}\S{1,120}\s{1,4}login\s{1,4}\S{1,80}\s{1,4}password\s{1,4}(?P<value>[^\s<$]{6,120})"
        ),
    ),
    _Format("master-key", "MASTER_KEY", re.compile(r"MASTER_KEY\s{0,3}[=:]\s{0,3}(?P<value>[0-9a-f]{32,64})\b")),
    _Format(
        "command-line-password",
        "sshpass",
        re.compile(r"""\bsshpass\s{1,4}-p\s{0,4}['\"]?(?P<value>[^\s'\"$<]{6,80})"""),
    ),
    _Format(
        "command-line-password", "mysql", re.compile(r"""\bmysql(?:dump)?\s[^\n]{0,60}-p(?P<value>[^\s'\"$<]{6,80})""")
    ),
)
_PASSWORD: Final = re.compile(
    r"(?:passwor[dt]|passphrase|mot de passe|\bpasswd|\bpass\b|\bpw\b)(?:\s{0,2}(?:is|:|=|→|,)\s{0,2}"
    r"|\s)[`'\"]?(?P<value>[^\s`'\"<>$(){}]{8,64})"
)
_WORDS: Final = ("passwor", "passphrase", "mot de passe", "passwd", "pass", "pw")


def known_formats(text: str) -> list[Span]:
    """Every match of the table, and every password that words announce."""
    found = [
        _span(kind, match)
        for kind, marker, expression in _FORMATS
        if marker in text
        for match in expression.finditer(text)
    ]
    lowered = text.lower()
    if len(lowered) == len(text) and any(word in lowered for word in _WORDS):
        found += [
            _span("password", match)
            for match in _PASSWORD.finditer(lowered)
            if _is_mixed(text[match.start("value") : match.end("value")].rstrip(".,;"))
        ]
    return found


def _span(kind: str, match: re.Match[str]) -> Span:
    name = "value" if "value" in match.re.groupindex else 0
    return Span(kind, match.start(name), match.end(name))


def _is_mixed(value: str) -> bool:
    """Whether it has lower case, upper case, digits and signs, as a chosen password has and prose hardly ever."""
    tests = (str.islower, str.isupper, str.isdigit, lambda letter: letter in "!#%&*?@+^~|$")
    return all(any(test(letter) for letter in value) for test in tests)
