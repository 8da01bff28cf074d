"""Git's own files beside the objects: HEAD, the configuration, `.git/index`, the packs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha1
from typing import Final

from gitmem.checks.findings import Finding
from gitmem.git.config import is_malformed
from gitmem.git.repository import Repository

_HEAD: Final = re.compile(rb"(?:ref: refs/heads/[^\0-\x20\x7f]+|[0-9a-f]{40})\n?\Z")
_DIGEST: Final = 20
_BLOCK: Final = 1024 * 1024


def git_files(repository: Repository) -> Iterator[Finding]:
    """What plain git would stumble over."""
    with suppress(FileNotFoundError), open(os.path.join(repository.git_dir, "HEAD"), "rb") as file:
        if not _HEAD.match(file.read()):
            message = (
                "It names no branch, so that git takes the folder for no repository. Write 'ref: refs/heads/main'."
            )
            yield Finding(check="head", subject="HEAD", message=message)
    if is_malformed(os.path.join(repository.git_dir, "config")):
        message = "Git cannot read it. Correct it, or copy it from a fresh repository (git init)."
        yield Finding(check="repository", subject=".git/config", message=message)
    if has_corrupt_index(repository):
        message = "Its checksum is wrong, so that git refuses it. Run doctor --repair to make it anew from main."
        yield Finding(check="staging", subject=".git/index", message=message)
    yield from _packs(os.path.join(repository.objects.folder, "pack"))


def index_path(repository: Repository) -> str:
    """Where `.git/index` lies."""
    return os.path.join(repository.git_dir, "index")


def has_corrupt_index(repository: Repository) -> bool:
    """Whether git refuses `.git/index`. It may end with zeros for a checksum (index.skipHash)."""
    return is_corrupt(index_path(repository), bytes(_DIGEST))


def is_corrupt(path: str, *others: bytes) -> bool:
    """Whether a file of Git's ends with neither the SHA-1 of its bytes nor one of `others`.

    A file that is not there is not corrupt.
    """
    try:
        size = os.stat(path).st_size - _DIGEST
        if size <= 0:
            return True
        digest = sha1()
        with open(path, "rb") as file:
            while size and (block := file.read(min(_BLOCK, size))):
                digest.update(block)
                size -= len(block)
            return file.read() not in (digest.digest(), *others)
    except FileNotFoundError:
        return False


def _packs(folder: str) -> Iterator[Finding]:
    names = set(os.listdir(folder)) if os.path.isdir(folder) else set()
    for name in sorted(names):
        stem, extension = os.path.splitext(name)
        if not name.startswith("pack-") or extension not in (".pack", ".idx"):
            continue
        path = os.path.join(folder, name)
        if is_corrupt(path):
            again = extension == ".idx"
            remedy = "git index-pack makes it again from its pack." if again else "Bring it back from a clone."
            yield Finding(check="packs", subject=name, message=f"It is damaged: what only it holds is lost. {remedy}")
        elif extension == ".pack" and f"{stem}.idx" not in names and not os.path.exists(f"{path[:-5]}.idx"):
            message = "Its index (.idx) is gone, so that nothing in it can be read. Make it again with git index-pack."
            yield Finding(check="packs", subject=name, message=message)
