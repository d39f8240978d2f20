"""Runs mpi4py's tests, given as the first argument, and says on rank 0 how many were skipped for each reason."""

import collections
import runpy
import sys
import unittest

reasons = collections.Counter()
count = unittest.TestResult.addSkip


def add_skip(self, test, reason):
    reasons[reason] += 1
    count(self, test, reason)


unittest.TestResult.addSkip = add_skip
sys.argv = sys.argv[1:]
sys.path[0] = sys.argv[0].rpartition("/")[0]
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    from mpi4py import MPI

    if MPI.COMM_WORLD.Get_rank() == 0:
        for reason, times in sorted(reasons.items()):
            print(f"skipped {times}: {reason}", flush=True)
        print("all skips are named", flush=True)
