"""Prints the fates of all small changes of some steps, as JSON: survey.py STEP..."""

import json
import sys

from k3.graph.mutate import survey

if __name__ == "__main__":
    print(json.dumps({step: survey(step) for step in sys.argv[1:]}))
