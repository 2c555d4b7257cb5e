"""Makes kills, the mutants of exact and the small models importable."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "exact"), str(HERE.parents[1])]
