"""`python -m gitmem`, the command `gitmem`, and what Git starts to show and to merge documents."""

from __future__ import annotations

import os
import sys

if not __package__:  # Git starts this file by its path: see gitmem.git.drivers
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main() -> None:
    """Run the command line of this process.

    Ctrl-C ends it without a traceback while the commands are imported and while the interpreter
    ends; in between a command may catch it. Where Ctrl-C is ignored, it stays ignored.
    """
    import signal

    caught = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if caught:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from gitmem.cli.main import EXIT_INTERRUPTED
    from gitmem.cli.main import main as run

    try:
        if caught:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    finally:
        if caught:
            signal.signal(signal.SIGINT, signal.SIG_DFL)


def drive(command: str, *arguments: str) -> int:
    """Do what Git asks for; the exit status. Anything that fails is for Git to do by itself."""
    try:
        if command == "textconv":
            from gitmem.textconv import show

            show(*arguments)
            return 0
        from gitmem.mergedriver import drive

        return drive(*arguments)
    except Exception as error:
        print(f"gitmem {command}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    if __package__:
        main()
    else:
        sys.exit(drive(*sys.argv[1:]))
