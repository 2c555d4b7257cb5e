"""The modules of what runs on ranks, beside the tests that send it there."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
