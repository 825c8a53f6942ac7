# SPDX-License-Identifier: BSD-2-Clause
import os

from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.makefile import MakefilePackage

from spack.package import *


class Gallop(MakefilePackage, CudaPackage):
    """Matrix types for PETSc with fast products on GPUs."""

    # no public address yet: make dist makes this archive, and spack is run where it is
    manual_download = True
    url = f"file://{os.getcwd()}/gallop-0.2.0.tar.gz"

    license("BSD-2-Clause")

    version("0.2.0")

    depends_on("c", type="build")
    depends_on("cxx", type="build", when="+cuda")
    depends_on("python@3.6:", type="build")

    depends_on("mpi")
    depends_on("petsc@3.26+shared+mpi")
    depends_on("petsc~cuda", when="~cuda")
    for arch in CudaPackage.cuda_arch_values:
        depends_on(f"petsc+cuda cuda_arch={arch}", when=f"+cuda cuda_arch={arch}")
    depends_on("petsc+cuda", when="+cuda")

    def make_arguments(self):
        return [f"PETSC_DIR={self.spec['petsc'].prefix}", "PETSC_ARCH=", f"PREFIX={self.prefix}"]

    @property
    def build_targets(self):
        return self.make_arguments() + ["all"]

    @property
    def install_targets(self):
        return self.make_arguments() + ["install"]

    def edit(self, spec, prefix):
        pass  # the makefile asks PETSc for compilers and flags
