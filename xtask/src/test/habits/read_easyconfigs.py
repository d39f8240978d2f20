"""Reads all easyconfig files in a folder, checks their style, and prints the dependencies of each."""

import pathlib
import sys

from easybuild.tools.options import set_up_configuration

folder = pathlib.Path(sys.argv[1])
toolchains = ",".join(str(folder / "toolchains" / pattern) for pattern in ("*.py", "mpi/*.py"))
set_up_configuration(
    args=[
        "--include-toolchains=" + toolchains,
        "--robot-paths=" + str(folder),
        # The tests run as root, and build nothing here.
        "--allow-use-as-root-and-accept-consequences",
        "--modules-tool=EnvironmentModules",
        "--module-syntax=Tcl",
        "--allow-modules-tool-mismatch",
    ],
    silent=True,
)

# These modules need the configuration when they are imported.
from easybuild.framework.easyconfig.easyconfig import EasyConfig  # noqa: E402
from easybuild.framework.easyconfig.style import check_easyconfigs_style  # noqa: E402
from easybuild.tools.toolchain.utilities import search_toolchain  # noqa: E402

paths = sorted(str(path) for path in folder.glob("*.eb"))
for path in paths:
    easyconfig = EasyConfig(path, validate=True)
    names = [
        "%s %s" % (each["name"], each["full_mod_name"].split("/", 1)[1]) for each in easyconfig.dependencies()
    ]
    print("%s %s: %s" % (easyconfig.name, easyconfig.version, ", ".join(names)))
toolchain, _ = search_toolchain("gweft")
assert toolchain is not None and toolchain.MPI_MODULE_NAME == ["Weft"], toolchain
faults = check_easyconfigs_style(paths)
assert faults == 0, "%s faults of style" % faults
