"""Where the command line begins: before anything is imported that takes long."""

import signal
import sys


def main() -> None:
    """Run the command line of this process.

    Ctrl-C ends it without a traceback while the commands are imported and while the interpreter
    ends; in between a command may catch it. Where Ctrl-C is ignored, it stays ignored.
    """
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


if __name__ == "__main__":
    main()
