"""The command: measures everything and prints the tables on stdout, progress on stderr."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.benchmarks import http, measures, processes, report


def main() -> None:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to 100,000 documents, in some minutes")
    parser.add_argument("--folder", type=Path, help="where to make the stores (default: the temporary folder)")
    parser.add_argument("--http", action="store_true", help="only the server under load, in a minute; needs wrk")
    options = parser.parse_args()
    processes.use_plain_git()
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="gitmem-benchmarks-", dir=options.folder) as name:
        folder = Path(name)
        facts = report.machine(folder)
        tables = [] if options.http else [report.render(measures.measure(_scale(options), folder))]
        if shutil.which("wrk"):
            tables.append(report.render_http(http.measure(folder)))
        elif options.http:
            parser.error("--http needs wrk: apt install wrk")
    minutes = (time.monotonic() - started) / 60
    print(f"`python -m tests.benchmarks {' '.join(sys.argv[1:])}`, {minutes:.0f} minutes on {facts}.\n")
    print("\n\n".join(tables))


def _scale(options: argparse.Namespace) -> measures.Plan:
    return measures.QUICK if options.quick else measures.FULL


if __name__ == "__main__":
    main()
