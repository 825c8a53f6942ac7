# SPDX-License-Identifier: BSD-2-Clause
"""Compile libgallop.so with make and put it into the Python package petsc_gallop; pip runs this.

Environment:
  PETSC_DIR, PETSC_ARCH   the PETSc to compile for; without them that of the petsc4py, or else of the package petsc, where
                          this Python installs packages, and if there is none the one that make finds or builds
  GALLOP_LIB              a libgallop.so that was compiled already: it is taken as it is
"""
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
BUILD = "build/python"  # what setuptools leaves, beside what make leaves


def version():
    header = (ROOT / "include" / "petscgallop.h").read_text()
    return ".".join(re.search(rf"GALLOP_VERSION_{part}\s+(\d+)", header).group(1) for part in ("MAJOR", "MINOR", "SUBMINOR"))


def find_petsc(packages):
    """PETSC_DIR and PETSC_ARCH of the petsc4py or the petsc in a folder of Python packages, or none.

    pip hides installed packages while it builds, so they are not imported.
    """
    config = packages / "petsc4py" / "lib" / "petsc.cfg"
    found = dict(re.findall(r"^(\w+)\s*=\s*(.*?)\s*$", config.read_text(), re.M)) if config.is_file() else {}
    if (Path(found.get("PETSC_DIR", "")) / "include" / "petscversion.h").is_file():
        return {"PETSC_DIR": found["PETSC_DIR"], "PETSC_ARCH": found.get("PETSC_ARCH", "").split(os.pathsep)[0]}
    if (packages / "petsc" / "include" / "petscversion.h").is_file():  # petsc4py's wheel was built elsewhere, for this one
        return {"PETSC_DIR": str(packages / "petsc"), "PETSC_ARCH": ""}
    return {}


def compile_library():
    """Run make, and return the path of the library, which make prints."""
    env = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    if not env.get("PETSC_DIR") and not env.get("VARIANT"):
        for packages in dict.fromkeys(Path(sysconfig.get_path(key)) for key in ("platlib", "purelib")):
            found = find_petsc(packages)
            if found:
                env.update(found)
                break
    make = subprocess.Popen(["make", "all"], cwd=ROOT, env=env, stdout=subprocess.PIPE, universal_newlines=True)
    library = None
    for line in make.stdout:
        print(line, end="", flush=True)
        if line.strip().endswith("/libgallop.so") and line.startswith("  /"):
            library = line.strip()
    if make.wait() or not library:
        sys.exit("petsc_gallop: make did not compile libgallop.so; what it printed is above (pip -v shows it)")
    return library


class Build(build_py):
    def run(self):
        super().run()
        target = (ROOT / "python" if self.editable_mode else Path(self.build_lib)) / "petsc_gallop"
        shutil.copy(os.environ.get("GALLOP_LIB") or compile_library(), target / "libgallop.so")


class Wheel(bdist_wheel):
    """The library depends on the machine, and on no version of Python."""

    def finalize_options(self):
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self):
        return ("py3", "none", super().get_tag()[2])


class WithLibrary(Distribution):
    def has_ext_modules(self):
        return True


(ROOT / BUILD).mkdir(parents=True, exist_ok=True)
setup(version=version(), distclass=WithLibrary, cmdclass={"build_py": Build, "bdist_wheel": Wheel},
      options={"build": {"build_base": BUILD}, "egg_info": {"egg_base": BUILD}, "bdist_wheel": {"bdist_dir": f"{BUILD}/wheel"}})
