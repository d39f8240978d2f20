"""Ranks whose Python starts processes: multiprocessing by fork and by spawn, os.fork with and
without exit handlers, and another program that uses mpi4py (a world of one)."""

import multiprocessing
import os
import subprocess
import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size


def square(x):
    return x * x


def exchange(what):
    """The ranks still reach each other."""
    got = world.sendrecv((what, rank), (rank + 1) % size, source=(rank - 1) % size)
    assert got == (what, (rank - 1) % size), (what, got)
    assert world.allreduce(rank) == size * (size - 1) // 2, what


def pool(method):
    with multiprocessing.get_context(method).Pool(2) as workers:
        assert workers.map(square, range(10)) == [x * x for x in range(10)]


def child(leave):
    """A forked child that uses MPI, gets an error, and leaves."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            world.barrier()
        except MPI.Exception:
            leave(5)
        leave(6)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5, leave


def main():
    pending = world.irecv(source=(rank - 1) % size, tag=9)
    exchange("nothing")
    pool("fork")
    exchange("multiprocessing by fork")
    pool("spawn")
    exchange("multiprocessing by spawn")
    child(os._exit)
    exchange("a child that calls _exit")
    child(sys.exit)
    exchange("a child that runs its exit handlers")
    alone = "from mpi4py import MPI; assert MPI.COMM_WORLD.size == 1; print('one')"
    answer = subprocess.run([sys.executable, "-c", alone], check=True, capture_output=True)
    assert answer.stdout == b"one\n", answer
    exchange("another MPI program")
    world.send("late", (rank + 1) % size, tag=9)
    assert pending.wait() == "late"
    world.barrier()
    if rank == 0:
        print("correct")


if __name__ == "__main__":
    main()
