"""A message whose type differs from that of its receive. The checking mode must name both lines that end in "named"."""
import array
import threading

from mpi4py import MPI

world = MPI.COMM_WORLD


def exchange():
    if world.rank == 0:
        world.Send(array.array("i", [1, 2]), dest=1, tag=7)  # named
    if world.rank == 1:
        world.Recv(array.array("d", [0]), source=0, tag=7)  # named


def compute(sums):
    for i in range(100000):
        sums[0] += i


# Another thread of Python has the interpreter's lock again and again.
thread = threading.Thread(target=compute, args=([0],))
thread.start()
exchange()
thread.join()
