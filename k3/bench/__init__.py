"""How fast a checkpoint runs here, beside what the machine allows.

Speeds, time to the first token and memory of one model on a CPU. The machine's limits
are measured in the same rounds, because a shared machine's drift by the minute.
"""

from k3.bench.report import Comparison as Comparison
from k3.bench.report import Figure as Figure
from k3.bench.report import Report as Report
from k3.bench.report import compare as compare
from k3.bench.run import run as run
from k3.bench.work import Setting as Setting

__all__ = ["Comparison", "Figure", "Report", "Setting", "compare", "run"]
