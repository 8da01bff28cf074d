"""Every target under atheris, which keeps the inputs that reach new code and changes them further."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.fuzz.targets import SEEDS, TARGETS
from tests.support import clean_environment

ROOT = Path(__file__).parent.parent.parent
RUNS = 200_000

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("atheris") is None, reason="atheris is not installed; the extra [test] brings it"),
]


def fuzzed(target: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.fuzz", target, "-seed=1", f"-artifact_prefix={folder}/", *options, str(folder)],
        cwd=ROOT, env=clean_environment(), capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
def test_no_input_breaks_a_promise(target: str, tmp_path: Path) -> None:
    for number, seed in enumerate(SEEDS[target]):
        (tmp_path / f"seed-{number}").write_bytes(seed)
    ran = fuzzed(f"tests.fuzz.targets:{target}", tmp_path, f"-runs={RUNS}", "-max_len=2048", "-timeout=10")
    assert ran.returncode == 0, ran.stderr[-3_000:]
    assert f"Done {RUNS} runs" in ran.stderr


def test_the_harness_finds_a_fault(tmp_path: Path) -> None:
    ran = fuzzed("tests.fuzz.planted:fault", tmp_path, f"-runs={RUNS * 10}", "-max_len=8")
    assert ran.returncode != 0
    assert "the planted fault" in ran.stdout + ran.stderr
