# SPDX-License-Identifier: BSD-2-Clause
# For PETSc's configure: this file goes to config/BuildSystem/config/packages/, and reg.patch makes PETSc load the library.
import config.package
import os

class Configure(config.package.Package):
  def __init__(self, framework):
    config.package.Package.__init__(self, framework)
    self.download               = 'NoDefault' # no public address yet: --download-gallop takes a file, a folder, a git repository or an address
    self.functions              = []
    self.includes               = []
    self.precisions             = ['single','double']
    self.linkedbypetsc          = 0
    self.builtafterpetsc        = 1
    self.skippackagelibincludedirs = 1
    return

  def setupDependencies(self, framework):
    config.package.Package.setupDependencies(self, framework)
    self.sharedLibraries = framework.require('PETSc.options.sharedLibraries',self)
    self.mpi             = framework.require('config.packages.MPI',self)
    self.blasLapack      = framework.require('config.packages.BlasLapack',self)
    self.cuda            = framework.require('config.packages.CUDA',self)
    self.deps            = [self.mpi,self.blasLapack]
    self.odeps           = [self.cuda]
    return

  def downLoad(self):
    if self.download == 'NoDefault':
      raise RuntimeError('Gallop has no public address yet: use --download-gallop=/path/to/gallop-<version>.tar.gz, or --with-gallop-dir=<folder of its sources>')
    return config.package.Package.downLoad(self)

  def Install(self):
    if not self.checkSharedLibrariesEnabled():
      raise RuntimeError('Gallop requires shared libraries: PETSc loads it when a program starts')
    if self.argDB['prefix'] and not 'package-prefix-hash' in self.argDB:
      prefix = os.path.abspath(os.path.expanduser(self.argDB['prefix']))
      barg   = 'PETSC_DIR='+prefix+' PETSC_ARCH=""'
    else:
      prefix = os.path.join(self.petscdir.dir,self.arch)
      barg   = 'PETSC_DIR=${PETSC_DIR} PETSC_ARCH=${PETSC_ARCH}'
    barg = barg+' PREFIX='+prefix
    # PETSc loads libpetscgallop when a program starts
    self.addPost(self.packageDir, [barg+' ${OMAKE} '+barg+' all',
                                   barg+' ${OMAKE} '+barg+' install',
                                   'ln -sf libgallop.{0} {1}/libpetscgallop.{0}'.format(self.setCompilers.sharedLibraryExt, os.path.join(prefix,'lib'))])
    self.addMakeCheck(self.packageDir, '${OMAKE} '+barg+' check TESTS=examples-solve_c%')
    return self.installDir

  def configureLibrary(self):
    '''Only its sources can be given: the library has to be compiled for this very PETSc'''
    if not self.argDB.get('download-gallop'):
      source = self.argDB.get('with-gallop-dir')
      if not source or not os.path.isfile(os.path.join(source,'include','petscgallop.h')) or not os.path.isfile(os.path.join(source,'makefile')):
        raise RuntimeError('Gallop is compiled after PETSc, so its sources are needed: use --with-gallop-dir=<folder of its sources> or --download-gallop=/path/to/gallop-<version>.tar.gz')
      self.packageDir = os.path.abspath(source)
      self.installDir = self.defaultInstallDir
      self.Install()
      self.found      = 1
      return
    config.package.Package.configureLibrary(self)
    return
