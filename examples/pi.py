"""pi by Monte Carlo with mpi4py: the share of random points of the unit square that fall into the quarter circle.

    mpiexec -n 4 python3 pi.py [points]

Points come in 64 blocks; block i is made from seed i, whichever rank works on it, so that the count of hits does not
depend on the number of ranks. Rank 0 counts all blocks again by itself and compares; then it checks that the estimate
is within five standard deviations of pi. Exit code 1 if either is wrong.
"""

import math
import random
import sys

from mpi4py import MPI

BLOCKS = 64


def hits(block, points):
    """How many of `points` random points, made from the seed `block`, lie in the quarter circle."""
    draw = random.Random(block).random
    return sum(draw() ** 2 + draw() ** 2 < 1.0 for _ in range(points))


def main():
    comm = MPI.COMM_WORLD
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 640_000
    each = max(1, total // BLOCKS)

    mine = {b: hits(b, each) for b in range(comm.rank, BLOCKS, comm.size)}
    count = comm.allreduce(sum(mine.values()), op=MPI.SUM)
    tables = comm.gather(mine, root=0)

    correct = True
    if comm.rank == 0:
        merged = {block: n for table in tables for block, n in table.items()}
        serial = {block: hits(block, each) for block in range(BLOCKS)}
        estimate = 4 * count / (BLOCKS * each)
        deviation = math.sqrt(math.pi * (4 - math.pi) / (BLOCKS * each))
        off = abs(estimate - math.pi)
        correct = merged == serial and count == sum(serial.values()) and off < 5 * deviation
        print(f"pi: {BLOCKS * each} points on {comm.size} ranks: {estimate:.6f}, off by {off:.1e}, "
              f"{count} hits (alone: {sum(serial.values())}): {'correct' if correct else 'WRONG'}")
    correct = comm.bcast(correct, root=0)
    sys.exit(0 if correct else 1)


if __name__ == "__main__":
    main()
