"""Writes an HDF5 file with all ranks, rows in turn and blocks together, and reads it with one process."""

import sys

import h5py
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
ROWS, LENGTH = 64, 4096
table = np.arange(ROWS * 1000, dtype="i4").reshape(ROWS, 1000)
roots = np.sqrt(np.arange(LENGTH, dtype="f8"))

with h5py.File(sys.argv[1], "w", driver="mpio", comm=comm, libver="earliest") as file:
    rows = file.create_dataset("table", table.shape, dtype="i4", track_times=False)
    rows[comm.rank :: comm.size] = table[comm.rank :: comm.size]
    chunks = file.create_dataset("roots", roots.shape, dtype="f8", chunks=(256,), track_times=False)
    first, end = (LENGTH * rank // comm.size for rank in (comm.rank, comm.rank + 1))
    with chunks.collective:
        chunks[first:end] = roots[first:end]
    file.attrs["version"] = 3

comm.Barrier()
if comm.rank == 0:
    with h5py.File(sys.argv[1], "r") as file:
        assert (file["table"][...] == table).all()
        assert (file["roots"][...] == roots).all()
        print("read", sorted(file), file.attrs["version"], flush=True)
