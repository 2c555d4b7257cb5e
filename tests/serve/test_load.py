"""benchmarks/load.py with ten clients: nothing lost, mixed up or left behind."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "load.py"


@pytest.mark.slow
def test_ten_clients_lose_nothing_when_a_replica_is_killed():
    command = [sys.executable, str(SCRIPT), "--clients", "10", "--seconds", "10"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"lost": 0' in done.stdout
    assert '"mixed up": 0' in done.stdout
    assert "killed replica process" in done.stdout
