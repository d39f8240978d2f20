"""Weft as the MPI library of a toolchain of EasyBuild."""

from easybuild.tools.toolchain.constants import COMPILER_VARIABLES, MPI_COMPILER_VARIABLES
from easybuild.tools.toolchain.mpi import Mpi
from easybuild.tools.toolchain.variables import CommandFlagList

TC_CONSTANT_WEFT = "Weft"
TC_CONSTANT_MPI_TYPE_WEFT = "MPI_TYPE_WEFT"

# Variables by which the wrappers take another compiler, by the name of the compiler's variable.
WRAPPER_VARIABLES = {"CC": "WEFT_CC", "CXX": "WEFT_CXX", "FC": "WEFT_FC"}


class Weft(Mpi):
    """The library, its wrappers and mpiexec."""

    MPI_MODULE_NAME = ["Weft"]
    MPI_FAMILY = TC_CONSTANT_WEFT
    MPI_TYPE = TC_CONSTANT_MPI_TYPE_WEFT
    MPI_LIBRARY_NAME = "mpi_abi"

    MPI_COMPILER_MPIF77 = "mpif77"
    MPI_COMPILER_MPIF90 = "mpifort"
    MPI_COMPILER_MPIFC = "mpifort"

    MPI_SHARED_OPTION_MAP = {"_opt_%s" % name: "" for name, _ in MPI_COMPILER_VARIABLES}

    def _set_mpi_compiler_variables(self):
        """Names the toolchain's compilers to the wrappers, before CC may become mpicc itself."""
        for name, _ in COMPILER_VARIABLES:
            if name in WRAPPER_VARIABLES:
                compiler = str(self.variables[name].get_first())
                self.variables.nappend(WRAPPER_VARIABLES[name], compiler, var_class=CommandFlagList)
        super()._set_mpi_compiler_variables()

    def mpi_cmd_prefix(self, nr_ranks=1):
        """Returns the command that starts a program on a number of ranks."""
        return "mpiexec -n %s" % nr_ranks

    def mpi_cmd_for(self, cmd, nr_ranks):
        """Returns the command that runs a command on a number of ranks."""
        return "%s %s" % (self.mpi_cmd_prefix(nr_ranks), cmd)
