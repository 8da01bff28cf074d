"""The command: measures everything and prints the tables on stdout, progress on stderr."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from tests.benchmarks import measures, processes, report


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to 100,000 documents, in some minutes")
    parser.add_argument("--folder", type=Path, help="where to make the stores (default: the temporary folder)")
    options = parser.parse_args()
    processes.use_plain_git()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gitmem-benchmarks-", dir=options.folder) as name:
        folder = Path(name)
        facts = report.machine(folder)
        results = measures.measure(measures.QUICK if options.quick else measures.FULL, folder)
    minutes = (time.monotonic() - started) / 60
    print(f"`python -m tests.benchmarks{' --quick' if options.quick else ''}`, {minutes:.0f} minutes on {facts}.\n")
    print(report.render(results))


if __name__ == "__main__":
    main()
