"""Toolchain of GCC and Weft."""

from easybuild.toolchains.gcc import GccToolchain
from easybuild.toolchains.mpi.weft import Weft


class Gweft(GccToolchain, Weft):
    """Compiler toolchain with GCC and Weft."""

    NAME = "gweft"
    SUBTOOLCHAIN = GccToolchain.NAME
