"""Makes the small models of the exact tests importable."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "exact"))
