"""`python -m tests.fuzz MODULE:FUNCTION [libFuzzer's options] [folders with inputs]`: fuzz one target with atheris."""

import sys
from importlib import import_module

import atheris


def main() -> None:
    module, _, name = sys.argv[1].partition(":")
    with atheris.instrument_imports(include=["gitmem", "tests.fuzz", "json"]):
        target = getattr(import_module(module), name)
    atheris.Setup([sys.argv[0], *sys.argv[2:]], target)
    atheris.Fuzz()


main()
