"""What finite precision does: the true error of a run, and balls around its modules."""

from k3.verify.enclose.module import module as module
from k3.verify.enclose.report import Ball as Ball
from k3.verify.enclose.report import ModuleReport as ModuleReport
from k3.verify.enclose.run import run as run
from k3.verify.enclose.summary import Flip as Flip
from k3.verify.enclose.summary import Report as Report
from k3.verify.enclose.summary import lines as lines

__all__ = ["Ball", "Flip", "ModuleReport", "Report", "lines", "module", "run"]
