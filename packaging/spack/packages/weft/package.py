# SPDX-License-Identifier: MIT OR Apache-2.0
#
#     spack repo add packaging/spack
#     spack dev-build weft@main            # in a checkout
#     spack install hdf5 ^weft             # any package that needs mpi

import os

from spack.package import *


class Weft(Package):
    """MPI library in Rust with the MPI 5.0 standard ABI, mpiexec and compiler wrappers."""

    homepage = "https://weft-mpi.invalid"

    license("MIT OR Apache-2.0")

    version("main")

    variant("fortran", default=True, description="Build the Fortran modules for the compiler in use")
    variant("libfabric", default=False, description="Networks of libfabric, loaded at run time")
    variant("verbs", default=False, description="InfiniBand and RoCE, loaded at run time")
    variant("legacy", default=False, description="Programs built with MPICH or Open MPI find Weft without mpiexec")

    depends_on("c", type=("build", "run"))
    depends_on("cxx", type=("build", "run"))
    depends_on("fortran", type=("build", "run"), when="+fortran")
    depends_on("rust@1.90:", type="build")
    depends_on("libfabric", type="run", when="+libfabric")
    depends_on("rdma-core", type="run", when="+verbs")

    provides("mpi@:5.0")

    executables = ["^weft$"]

    @classmethod
    def determine_version(cls, exe):
        words = Executable(exe)("--version", output=str, error=str).split()
        return words[1] if words[:1] == ["weft"] and len(words) == 2 else None

    @property
    def libs(self):
        return find_libraries("libmpi_abi", root=self.prefix, recursive=True)

    @property
    def headers(self):
        return find_headers("mpi", root=self.prefix.include, recursive=False)

    def install(self, spec, prefix):
        cargo = Executable("cargo")
        cargo("xtask", "install", "--prefix", prefix)
        if spec.satisfies("+fortran"):
            # An installation of Spack is read-only later, so the modules are built now.
            Executable(join_path(prefix.bin, "mpifort"))("-showme:compile", output=os.devnull)

    def library_path(self, env):
        """Adds the folders of the libraries that are loaded at run time by their names."""
        for name in ("libfabric", "rdma-core"):
            if name in self.spec:
                for folder in self.spec[name].libs.directories:
                    env.append_path("LD_LIBRARY_PATH", folder)

    def setup_run_environment(self, env):
        env.set("MPICC", self.prefix.bin.mpicc)
        env.set("MPICXX", self.prefix.bin.mpicxx)
        env.set("MPIF77", self.prefix.bin.mpif77)
        env.set("MPIF90", self.prefix.bin.mpif90)
        if self.spec.satisfies("+legacy"):
            env.prepend_path("LD_LIBRARY_PATH", join_path(self.prefix.lib, "weft", "legacy"))
        self.library_path(env)

    def setup_dependent_build_environment(self, env, dependent_spec):
        # The wrappers call Spack's own wrappers of the compiler.
        module = dependent_spec.package.module
        for variable, attribute in (("WEFT_CC", "spack_cc"), ("WEFT_CXX", "spack_cxx"), ("WEFT_FC", "spack_fc")):
            if hasattr(module, attribute):
                env.set(variable, getattr(module, attribute))
        self.library_path(env)

    def setup_dependent_package(self, module, dependent_spec):
        self.spec.mpicc = self.prefix.bin.mpicc
        self.spec.mpicxx = self.prefix.bin.mpicxx
        if self.spec.satisfies("+fortran"):
            self.spec.mpifc = self.prefix.bin.mpif90
            self.spec.mpif77 = self.prefix.bin.mpif77
