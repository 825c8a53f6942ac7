# SPDX-License-Identifier: BSD-2-Clause
# Gallop: two commands, `make demo` and `make check`, set up what is missing by themselves; `make help` lists the rest.
# What make has to know about PETSc is in build/petsc/*.mk, which config/petsc writes after finding or building one.

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
# as many jobs as cores, unless -j says otherwise; not more than 16, since tests start several processes each
MAKEFLAGS += --no-builtin-rules --no-print-directory -j$(shell n=$$(nproc 2>/dev/null || echo 2); echo $$((n < 16 ? n : 16)))

PREFIX  ?= /usr/local
TIMEOUT ?= 300# seconds a test may take
TESTS   ?= %#   which tests `make check` runs
PRODUCTS ?= 100000# that `make stress` runs, of each kind
TOOLS   ?= memcheck racecheck initcheck synccheck# of compute-sanitizer, for `make sanitize`
SEEN    ?= tests/sanitized.tsv# what these have found clean
RUNS    ?= tests/kernels/runs.txt# of test programs, that `make sanitize` looks at and `make kernels` chooses
ARCHS   ?= 75 80# compute capabilities for which `make archs` compiles
NUMBERS ?= single complex int64 complex-int64# for which `make numbers` compiles
COMPILERS ?= gcc-11 gcc-12 gcc-13 gcc-14 clang-14 clang-16 clang-19# by which `make compilers` compiles
BENCH   ?= quick# what `make bench` and `make papers` run, quick or full
PAPERS  ?= evchyb csroverlap fastload hbp tiledspmm# whose figures `make papers` reproduces

version = $(shell awk '/define *GALLOP_VERSION_(MAJOR|MINOR|SUBMINOR)/ {v = v s $$3; s = "."} END {print v}' include/petscgallop.h)
target  = $(DESTDIR)$(abspath $(PREFIX))

# ---- which PETSc --------------------------------------------------------------------------------------------

ifneq ($(and $(PETSC_DIR),$(VARIANT)),)
$(error PETSC_DIR=$(PETSC_DIR) names a PETSc, and VARIANT=$(VARIANT) asks for one that make builds: set one of them)
endif

# one fragment for each way to ask for a PETSc, so that several can be used side by side; a link that leads elsewhere now asks for another one
petsc_asked := $(if $(PETSC_DIR),dir$(subst /,_,$(or $(realpath $(PETSC_DIR)),$(PETSC_DIR))/$(PETSC_ARCH)),$(or $(VARIANT),default))
comma       := ,
petsc_mk    := build/petsc/$(petsc_asked)$(addprefix -sm,$(subst $(comma),-,$(GALLOP_CUDA_ARCH))).mk
dry_run     := $(findstring n,$(filter-out -%,$(firstword $(MAKEFLAGS))))

ifneq ($(filter-out bench-check clean dist docs help plots report uninstall,$(or $(MAKECMDGOALS),all)),)
ifneq ($(if $(wildcard $(petsc_mk)),,$(dry_run)),)
$(error PETSc would be set up first, and what follows depends on it: run config/petsc, or make without -n, once)
endif

$(petsc_mk): config/petsc
	@config/petsc --makefile $@ $(if $(VARIANT),--variant $(VARIANT)) >/dev/null

include $(petsc_mk)
endif

# ---- the library --------------------------------------------------------------------------------------------

ifdef petsc_name
-include $(PETSC_DIR)/lib/petsc/conf/variables# with a dash: should this PETSc be gone, make writes the fragment again first
SHELL := /bin/bash

build   := build/$(petsc_name)
library := $(build)/lib/libgallop.so
program := $(build)/bin/gallop-info
c_sources    := $(sort $(shell find src -name '*.c' -not -path 'src/bin/*'))
cuda_sources := $(if $(petsc_cuda),$(sort $(shell find src -name '*.cu')))
objects      := $(patsubst src/%,$(build)/obj/%.o,$(c_sources) $(cuda_sources))

warnings := -Wall -Wextra -Wno-unused-parameter
includes := -Iinclude $(PETSC_CC_INCLUDES)
# CFLAGS, CPPFLAGS, CUDAFLAGS and LDFLAGS are the user's: make CFLAGS=...
compile_c    = $(PCC) $(PCC_FLAGS) $(warnings) $(includes) $(CPPFLAGS) $(CFLAGS)
compile_cuda = $(CUDAC) $(filter-out -std=%,$(CUDAC_FLAGS)) -std=c++17 --compiler-options="$(CUDA_CXXFLAGS) $(warnings)" \
               $(includes) $(MPICXX_INCLUDES) $(CPPFLAGS) $(CUDAFLAGS)
# nodelete: PETSc closes what it loaded at the end, when CUDA still refers to the kernels in it
link_library = $(PCC_LINKER) -shared -Wl,-soname,libgallop.so -Wl,-z,nodelete -Wl,-z,defs -Wl,--as-needed $(LDFLAGS)

all: $(library) $(program)
	@echo "Gallop for $(petsc_description):"
	@echo "  $(abspath $(library))"
	@echo "Use it in any program linked to that PETSc: -dll_append $(abspath $(library)) -mat_type gallop$(if $(petsc_cuda), -vec_type cuda)"
	@echo "What it has to work with, and whether its products are right here: $(abspath $(program))"

$(library): $(objects) $(build)/link.txt
	@mkdir -p $(@D)
	@echo "  LINK $@"
	@$(link_library) -o $@ $(objects) $(PETSC_LIB)

# it finds the library beside itself, in the build folder and where it is installed
$(program): src/bin/gallop-info.c $(build)/compile.txt | $(library)
	@mkdir -p $(@D)
	@echo "  CC   $<"
	@$(compile_c) -MMD -MP -MF $@.d -o $@ $< $(LDFLAGS) -L$(build)/lib '-Wl,-rpath,$$ORIGIN/../lib' -lgallop $(PETSC_LIB)

$(build)/obj/%.c.o: src/%.c $(build)/compile.txt
	@mkdir -p $(@D)
	@echo "  CC   $<"
	@$(compile_c) -MMD -MP -c -o $@ $<

$(build)/obj/%.cu.o: src/%.cu $(build)/compile.txt
	@mkdir -p $(@D)
	@echo "  CUDA $<"
	@$(compile_cuda) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

# What compiled and linked last is kept in a file that is written again, and so rebuilds, when it changes. It does not depend on the
# fragment: another way to ask for the same PETSc has another one, newer or older. A changed petscconf.h is seen as headers are.
define newline


endef
define remember # file, text
ifneq ($$(strip $$(subst $$(newline), ,$$(if $$(wildcard $(1)),$$(file <$(1))))),$$(strip $(2)))
$(1): force
endif
$(1): export GALLOP_REMEMBER = $$(strip $(2))
$(1):
	@mkdir -p $$(@D)
	@printf '%s\n' "$$$$GALLOP_REMEMBER" >$$@
endef
$(eval $(call remember,$(build)/compile.txt,$$(compile_c) $$(compile_cuda)))
$(eval $(call remember,$(build)/link.txt,$$(link_library) $$(objects) $$(PETSC_LIB)))

# The library says which commit it was built from: one small file is compiled again when that changes. A tarball's file knows it already.
commit ?= $(if $(wildcard .git),$(shell git describe --always --dirty --exclude '*' 2>/dev/null))
commit := $(commit)
$(eval $(call remember,$(build)/commit.txt,$$(commit)))
$(build)/obj/sys/commit.c.o: $(build)/commit.txt
$(build)/obj/sys/commit.c.o: private compile_c += $(if $(commit),-DGALLOP_COMMIT='"$(commit)"')

-include $(objects:.o=.d) $(program).d

# ---- tests --------------------------------------------------------------------------------------------------

run_env  = export PETSC_DIR=$(PETSC_DIR) PETSC_ARCH=$(PETSC_ARCH) GALLOP_LIB=$(abspath $(library)); . config/env
test_env = $(run_env); . config/test-env
with_lib = -L$(abspath $(build)/lib) -Wl,-rpath,$(abspath $(build)/lib) -lgallop $(PETSC_LIB)
test_packages := $(patsubst tests/%/,%,$(wildcard $(addprefix tests/,sys/ vec/ mat/ ksp/ snes/ examples/)))
testdir := $(abspath $(build)/tests)
# the harness and examples of PETSc's, which some packages of it leave out
need_examples := $(if $(wildcard $(petsc_examples)/gmakefile.test),,no-examples)

no-examples:
	@echo "$(PETSC_DIR) has no share/petsc/examples, which tests and demo need: PETSc's own make install puts it there" >&2; exit 1

harness = $(MAKE) -k -Otarget -f $(petsc_examples)/gmakefile.test PETSC_DIR=$(PETSC_DIR) PETSC_ARCH=$(PETSC_ARCH) CONFIGDIR=$(petsc_examples)/config \
          TESTSRCDIR=$(abspath tests) TESTDIR=$(testdir) pkgs="$(test_packages)" PYTHON=python3 TIMEOUT=$(TIMEOUT) \
          PETSCFLAGS="-I$(abspath include) -I$(petsc_examples)/src" PETSC_LIB="$(with_lib)" gmakesearch='$(TESTS)'
# for tests that run a script, which starts MPI programs itself
export GALLOP_TESTS := $(abspath tests)
export GALLOP_MPIEXEC = $(or $(filter-out %/config/mpiexec,$(PETSCMPIEXEC)),$(MPIEXEC))
export GALLOP_SKIPPED := $(testdir)/skipped
# a library with NCCL's functions, for tests without a GPU
nccl := $(testdir)/libtestnccl.so
export GALLOP_TEST_NCCL := $(nccl)
# with VALGRIND=1 the harness runs each rank under valgrind, which adds these options to the harness's own
export VALGRIND_OPTS += --suppressions=$(abspath config/valgrind.supp)
with_mps := $(if $(filter-out 0,$(MPS)),config/with-mps)# processes of many tests share a GPU
share_jobs := $(if $(dry_run),,+)# the harness runs as many tests at a time as -j says

# Device code for other GPUs than those that PETSc was built for, which no test would compile
other_archs = $(foreach arch,$(ARCHS),$(patsubst src/%,$(build)/archs/$(arch)/%.ptx,$(cuda_sources)))

archs: $(other_archs)
	@echo "$(words $(other_archs)) passed, 0 failed$(if $(petsc_cuda),,, 1 skipped)"

define for_arch # compute capability
$(build)/archs/$(1)/%.ptx: src/% $(build)/compile.txt
	@mkdir -p $$(@D)
	@echo "  CUDA $$<, compute capability $(1)"
	@$$(filter-out -gencode arch=%,$$(compile_cuda)) -gencode arch=compute_$(1),code=compute_$(1) -MMD -MP -MF $$(@:.ptx=.d) -ptx -o $$@ $$<
endef
$(foreach arch,$(ARCHS),$(eval $(call for_arch,$(arch))))

# and for other numbers and indices, of a PETSc whose petscconf.h says so and is this one's else
numbers_single        := PETSC_USE_REAL_SINGLE
numbers_complex       := PETSC_USE_COMPLEX
numbers_int64         := PETSC_USE_64BIT_INDICES
numbers_complex-int64 := $(numbers_complex) $(numbers_int64)
other_numbers = $(foreach kind,$(NUMBERS),$(patsubst src/%,$(build)/numbers/$(kind)/%.cubin,$(cuda_sources)))

numbers: $(other_numbers)
	@echo "$(words $(other_numbers)) passed, 0 failed$(if $(petsc_cuda),,, 1 skipped)"

define for_numbers
$(build)/numbers/$(1)/petscconf.h: $(build)/compile.txt
	@mkdir -p $$(@D)
	@{ echo '#include_next <petscconf.h>'; for name in PETSC_USE_REAL_SINGLE PETSC_USE_REAL_DOUBLE PETSC_USE_COMPLEX PETSC_USE_64BIT_INDICES; do printf '#undef %s\n' $$$$name; done; \
	  printf '#define %s 1\n' $(if $(filter single,$(1)),,PETSC_USE_REAL_DOUBLE) $(numbers_$(1)); } > $$@

$(build)/numbers/$(1)/%.cubin: src/% $(build)/numbers/$(1)/petscconf.h
	@mkdir -p $$(@D)
	@echo "  CUDA $$<, $(1)"
	@NVCC_PREPEND_FLAGS=-I$(build)/numbers/$(1) $$(filter-out -gencode arch=%,$$(compile_cuda)) -gencode arch=compute_90,code=sm_90 -MMD -MP -MF $$(@:.cubin=.d) -cubin -o $$@ $$<
endef
$(foreach kind,$(NUMBERS),$(eval $(call for_numbers,$(kind))))

-include $(other_archs:.ptx=.d) $(other_numbers:.cubin=.d)

# All sources by other compilers, those of a machine, and with headers of CUDA 12
compilers: export COMPILERS := $(COMPILERS)
compilers: export GALLOP_COMPILE_C = $(compile_c)
compilers: export GALLOP_COMPILE_CUDA = $(if $(petsc_cuda),$(filter-out -gencode arch=%,$(compile_cuda)))
compilers: export GALLOP_MPI_INCLUDES = $(filter -I%,$(MPICC_SHOW))# the compilers are not MPI's
compilers:
	@config/compilers

# Kernels on the CPU, a fiber for each thread: tests/emulation/README.md. PETSc's headers, stand-ins for CUDA's that only nvcc takes
emulation       := $(build)/emulation
emulates        := $(and $(petsc_cuda),$(filter x86_64,$(shell uname -m)))# fibers change in assembly
emulation_tests := $(if $(emulates),$(patsubst tests/emulation/%.cpp,%,$(filter-out %/emulate.cpp,$(wildcard tests/emulation/*.cpp))))
emulated        := $(addprefix $(emulation)/,$(emulation_tests))
compile_emulated = g++ -std=c++20 -O1 -g -w -fpermissive -fno-strict-aliasing -fsanitize=undefined -fno-sanitize=vptr,float-divide-by-zero -ffunction-sections \
                   -Itests/emulation/include -I$(emulation)/source/include -I$(emulation)/source/src $(includes) $(MPICXX_INCLUDES) $(CPPFLAGS)

# by the same kernels of OpenBLAS wherever it runs, those for AVX2: whether a solver of PETSc's orthogonalizes once more can hang on their rounding
emulate: $(emulated)
	@$(run_env); export OPENBLAS_CORETYPE=$${OPENBLAS_CORETYPE:-Haswell}; passed=0; failed=0; for test in $(emulation_tests); do echo "  EMULATE $$test, seed $(or $(SEED),1)"; \
	  case $$test in *several) run="$(MPIEXEC) -n 2" ;; *) run= ;; esac; \
	  if $$run $(emulation)/$$test $(or $(SEED),1) $(CASES); then passed=$$((passed + 1)); else failed=$$((failed + 1)); fi; done; \
	  echo "$$passed passed, $$failed failed$(if $(emulates),,, 1 skipped)"; [ $$failed = 0 ]

$(emulation)/prepared: tests/emulation/prepare.py $(shell find src include/gallop -name '*.c' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh')
	@rm -rf $(emulation)/source
	@mkdir -p $(@D)
	@tests/emulation/prepare.py . $(emulation)/source
	@touch $@

$(emulated:=.o) $(emulation)/emulate.o: $(emulation)/%.o: tests/emulation/%.cpp $(emulation)/prepared $(build)/compile.txt $(wildcard tests/emulation/*.h) $(shell find tests/emulation/include -type f)
	@echo "  CXX  $<"
	@$(compile_emulated) -c -o $@ $<

$(emulation)/clustersproductnarrow.o: tests/emulation/clustersproduct.cpp

# of PETSc's functions only those that the tests' parts of the sources call, and CUDA's and some of PETSc's are the emulation's
$(emulated): %: %.o $(emulation)/emulate.o
	@echo "  LINK $@"
	@$(PCC_LINKER) -fsanitize=undefined -Wl,--gc-sections -Wl,--as-needed -o $@ $^ $(PETSC_LIB) -lstdc++

$(nccl): tests/nccl/nccl.c include/gallop/ncclimpl.h $(build)/compile.txt
	@mkdir -p $(@D)
	@echo "  CC   $<"
	@$(compile_c) -fPIC -shared -o $@ $< $(PETSC_LIB)

# The list of tests is made again each time: the harness does not notice a new file.
check: $(need_examples) all $(nccl)
	@rm -rf $(testdir)/testfiles $(testdir)/counts $(testdir)/skipped
	@mkdir -p $(testdir)
	@$(share_jobs)$(harness) -s print-test 2>&1 >$(testdir)/asked.txt | grep . >&2 || true
	@if grep -qwE 'examples-solve_(python|pip)' $(testdir)/asked.txt; then $(run_env); config/petsc4py >/dev/null; fi || true # the test says what is wrong
	@$(share_jobs)$(test_env); $(with_mps) $(harness) test 2>&1 | config/test-summary $(testdir)

check_with = $(MAKE) --no-print-directory check# so named, make -n shows the line that has it, and does not run it

# Runs of test programs, RUNS, that together launch each kernel that the tests launch: tests/kernels/kernels.c notes which do, on a GPU
kernels_noted := $(build)/tests/libkernels.so
launches      := $(abspath $(build)/launches)

note_launches  = GALLOP_LAUNCHES=$(launches) GALLOP_LAUNCHES_NOTED_BY=$(abspath $(kernels_noted)) GALLOP_LAUNCHES_MPIEXEC="$(MPIEXEC)"
in_parts       = $(patsubst tests/%.c,%,$(shell grep -l -e 'TestInPart(' -e 'TestPropertiesRun(' -e 'fusedtest.h' -e 'stepstest.h' tests/*/*.c))# programs of which parts can run

$(kernels_noted): tests/kernels/kernels.c $(build)/compile.txt
	@mkdir -p $(@D)
	@echo "  CC   $<"
	@$(compile_c) -fPIC -fvisibility=default -shared -o $@ $<

kernels: all $(if $(petsc_cuda),$(kernels_noted))
	@$(run_env); if [ $$GALLOP_GPUS = 0 ]; then echo "make kernels needs a GPU" >&2; exit 1; fi
	@rm -rf $(launches); mkdir -p $(launches)
	@$(share_jobs)export $(note_launches); $(check_with) PETSCMPIEXEC=$(abspath config/with-kernels) || true # what failed is not chosen
	@$(test_env); export $(note_launches); config/kernels --programs $(testdir) --list $(RUNS) --with $(abspath config/with-kernels) $(launches) $(in_parts)

# These runs, or with TESTS or where there is no list of them tests, under the tools of compute-sanitizer, on a GPU. What is in SEEN is left out, and what is clean is written there.
listed_runs := $(and $(filter file,$(origin TESTS)),$(wildcard $(RUNS)))

sanitize: all $(nccl)
	@command -v compute-sanitizer >/dev/null || { echo "compute-sanitizer was not found: it comes with the CUDA Toolkit" >&2; exit 1; }
	@$(run_env); if [ $$GALLOP_GPUS = 0 ]; then echo "make sanitize needs a GPU" >&2; exit 1; fi
	@$(share_jobs)$(if $(listed_runs),$(test_env); rm -rf $(testdir)/testfiles && $(harness) -s $(addprefix $(testdir)/,$(sort $(shell awk '!/^#/ {print $$3}' $(RUNS)))) && $(with_mps) $(sanitize) --runs $(RUNS) --timeout $(TIMEOUT) $(TOOLS) -- $(abspath config/with-sanitizer),\
	  $(harness) -s print-test 2>/dev/null | $(sanitize) $(TOOLS) -- $(check_with) PETSCMPIEXEC=$(abspath config/with-sanitizer))

sanitize: export SANITIZER_MPIEXEC = $(MPIEXEC)
sanitize = config/sanitize --seen $(SEEN) --about "$(petsc_description)" --commit $(commit) --counts $(testdir) $(addprefix --minutes ,$(MINUTES)) $(if $(AGAIN),--again)

# Many products of processes that rest at random, by each way of ghost values, against PetscSF's
stress := $(build)/stress/exchange

stress: $(stress) $(nccl)
	@$(test_env); passed=0; failed=0; \
	  run() { echo "  STRESS $$1 processes, $${*:2}"; if $(MPIEXEC) -n $$1 $(stress) -one -products $(PRODUCTS) "$${@:2}"; then passed=$$((passed + 1)); else failed=$$((failed + 1)); fi; }; \
	  run 8 -way shared -device_enable none; run 8 -way nccl -device_enable none -mat_gallop_nccl $(nccl); \
	  if [ $$GALLOP_GPUS -gt 0 ]; then run 8 -way ipc; run 3 -way ipc -mat_gallop_exchange_stream side; fi; if [ $$GALLOP_GPUS -gt 1 ]; then run $$GALLOP_GPUS -way ipc; run $$GALLOP_GPUS -way ipc -mat_gallop_exchange_stream side; run $$GALLOP_GPUS -way nccl; fi; \
	  echo "$$passed passed, $$failed failed"; [ $$failed = 0 ]

$(stress): tests/mat/exchange.c $(library)
	@mkdir -p $(@D)
	@echo "  CC   $<"
	@$(compile_c) -o $@ $< $(with_lib)

# all test programs, none of which is run: on a machine that compiles for another
check-programs: $(need_examples) all $(nccl)
	@mkdir -p $(testdir)
	@$(share_jobs)$(harness) -s --eval '.SECONDEXPANSION:' --eval 'check-programs: $$$$(testexe.c) $$$$(testexe.cu) $$$$(testexe.F90)' check-programs

conformance: $(need_examples) all
	@test -x tests/conformance/run || { echo "make conformance: tests/conformance/run is missing, so nothing was tested" >&2; exit 1; }
	@$(share_jobs)$(test_env); export GALLOP_LIBRARY=$(abspath $(library)) GALLOP_BUILD=$(abspath $(build)) GALLOP_HARNESS=$(petsc_examples); \
	  $(with_mps) tests/conformance/run

# ---- examples and demo --------------------------------------------------------------------------------------

linked   := $(patsubst %,$(build)/examples/%,solve blocksolve convert)# the others know nothing of the library
programs := $(build)/examples/ex14 $(build)/examples/nonlinear $(linked)
ex14_source := $(firstword $(wildcard $(petsc_examples)/src/snes/tutorials/ex14.c $(PETSC_DIR)/src/snes/tutorials/ex14.c))

demo: $(need_examples) all $(programs)
	@$(run_env); examples/demo --library $(abspath $(library)) --programs $(abspath $(build)/examples) --mpiexec "$(MPIEXEC)"

examples: all $(filter-out %/ex14,$(programs))
	@echo "The examples, compiled, are in $(abspath $(build)/examples); what each shows: examples/README.md"

$(build)/examples/ex14: $(need_examples) $(ex14_source) $(build)/compile.txt
$(filter-out %/ex14,$(programs)): $(build)/examples/%: examples/%.c $(build)/compile.txt
$(linked): $(library)
$(programs):
	@mkdir -p $(@D)
	@echo "  CC   $<"
	@$(compile_c) -MMD -MP -MF $@.d -o $@ $< $(if $(filter $@,$(linked)),$(with_lib),$(PETSC_LIB))

-include $(programs:=.d)

# ---- benchmark ----------------------------------------------------------------------------------------------

bench_program := $(build)/benchmarks/gallopbench
bench_objects := $(patsubst %,$(build)/benchmarks/%.o,gallopbench.c common.c benchhost.c generate.c $(if $(petsc_cuda),benchdevice.cu))
# with the library's own objects, whose functions they call
hbp2d               := $(build)/benchmarks/hbp2d
evchybparts         := $(build)/benchmarks/evchybparts
hbp2d_objects       := $(patsubst %,$(build)/benchmarks/%.o,hbp2d.cu benchdevice.cu common.c generate.c) $(objects)
evchybparts_objects := $(patsubst %,$(build)/benchmarks/%.o,evchybparts.cu benchdevice.cu common.c generate.c) $(objects)

bench_instead := $(firstword $(filter -setup -first,$(BENCHFLAGS)))# of products
bench_output  := $(build)/benchmarks/$(BENCH)$(if $(bench_instead),$(bench_instead).txt,.tsv)
bench_json    := $(build)/benchmarks/$(BENCH)$(bench_instead).json

bench: bench-program
	@$(run_env); benchmarks/bench.py --program $(bench_program) --set $(BENCH) --output $(bench_output) --json $(bench_json) $(MATRICES) -- $(BENCHFLAGS)

bench-program: $(bench_program)

# time of the host's thread per product, beside the parent's
hosttime := $(build)/benchmarks/hosttime

bench-hosttime: $(hosttime)
	@$(run_env); $(hosttime) $(BENCHFLAGS)

$(hosttime): $(build)/benchmarks/hosttime.c.o $(library) $(build)/link.txt
	@echo "  LINK $@"
	@$(PCC_LINKER) $(LDFLAGS) -o $@ $< $(with_lib)

# products whose ghost values come from other processes, by each way
exchange := $(build)/benchmarks/exchange

bench-exchange: $(exchange)
	@$(run_env); for n in $$(echo $(or $(RANKS),2) | tr , ' '); do $(MPIEXEC) -n $$n $(exchange) $(BENCHFLAGS) || exit; done

$(exchange): $(build)/benchmarks/exchange.c.o $(library) $(build)/link.txt
	@echo "  LINK $@"
	@$(PCC_LINKER) $(LDFLAGS) -o $@ $< $(with_lib)

# the first products of a matrix, and whether a format pays that is built for them
fewproducts         := $(build)/benchmarks/fewproducts
fewproducts_objects := $(build)/benchmarks/fewproducts.c.o $(filter-out %/gallopbench.c.o,$(bench_objects))

cudacalls           := $(build)/benchmarks/libcudacalls.so

bench-fewproducts: $(fewproducts) $(if $(petsc_cuda),$(cudacalls))
	@$(run_env); $(if $(filter -calls,$(BENCHFLAGS)),LD_PRELOAD=$(cudacalls)) $(fewproducts) $(BENCHFLAGS)

# what the type gallop chooses, by rules and measured, beside all that it can choose from
bench-choice: $(fewproducts)
	@$(run_env); benchmarks/choice.py --program $(fewproducts) $(addprefix --seconds ,$(SECONDS_AT_MOST)) --output $(build)/benchmarks/choice.tsv $(MATRICES) -- $(BENCHFLAGS)

$(cudacalls): benchmarks/cudacalls.c $(build)/compile.txt
	@mkdir -p $(@D)
	@echo "  CC   $<"
	@$(CC) -O2 -fPIC -shared -I$(dir $(CUDAC))../include -o $@ $< -ldl


$(fewproducts): $(fewproducts_objects) $(library) $(build)/link.txt
	@echo "  LINK $@"
	@$(PCC_LINKER) $(LDFLAGS) -o $@ $(fewproducts_objects) $(with_lib)

# whole solves, first and later ones, by a program of ours and by PETSc's examples as they are
repeatsolve         := $(build)/benchmarks/repeatsolve
repeatsolve_objects := $(addprefix $(build)/benchmarks/,repeatsolve.c.o stencil.c.o) $(filter-out %/gallopbench.c.o,$(bench_objects))
solved_sources      := $(firstword $(wildcard $(petsc_examples)/src $(PETSC_DIR)/src))
solved_examples     := $(addprefix $(build)/benchmarks/petsc/,$(addprefix ksp/ksp/tutorials/,ex45 ex56 bench_kspsolve) \
                         $(addprefix snes/tutorials/,ex13 ex14 ex19 ex56) ts/tutorials/ex15 tao/unconstrained/tutorials/minsurf2)

bench-solves: $(repeatsolve) $(solved_examples)
	@$(run_env); benchmarks/solves.py --program $(repeatsolve) --examples $(build)/benchmarks/petsc --library $(abspath $(library)) --mpiexec "$(MPIEXEC)" \
	  --about "$(petsc_description), Gallop $(commit)" --set $(BENCH) --only '$(CASES)' $(addprefix --ranks ,$(RANKS)) \
	  --output $(build)/benchmarks/solves-$(BENCH).tsv -- $(BENCHFLAGS)

# the largest problem that a GPU has room for
bench-largest: $(filter %/ex14,$(solved_examples)) $(library)
	@$(run_env); benchmarks/largest.py --examples $(build)/benchmarks/petsc --library $(abspath $(library)) --mpiexec "$(MPIEXEC)" --folder $(build)/benchmarks $(LARGEST) -- $(BENCHFLAGS)

$(solved_examples): $(build)/benchmarks/petsc/%: $(solved_sources)/%.c $(build)/compile.txt
	@mkdir -p $(@D)
	@echo "  CC   $<"
	@$(compile_c) -o $@ $< $(PETSC_LIB)

$(repeatsolve): $(repeatsolve_objects) $(library) $(build)/link.txt
	@echo "  LINK $@"
	@$(PCC_LINKER) $(LDFLAGS) -o $@ $(repeatsolve_objects) $(with_lib)

# one problem on more and more processes, a GPU each
scaling         := $(build)/benchmarks/scaling
scaling_objects := $(addprefix $(build)/benchmarks/,scaling.c.o stencil.c.o) $(filter-out %/gallopbench.c.o,$(bench_objects))

bench-scaling: $(scaling)
	@$(run_env); benchmarks/scaling.py --program $(scaling) --mpiexec "$(MPIEXEC)" --about "$(petsc_description), Gallop $(commit)" --set $(BENCH) $(addprefix --ranks ,$(RANKS)) \
	  --output $(build)/benchmarks/scaling-$(BENCH).tsv -- $(BENCHFLAGS)

$(scaling): $(scaling_objects) $(library) $(build)/link.txt
	@echo "  LINK $@"
	@$(PCC_LINKER) $(LDFLAGS) -o $@ $(scaling_objects) $(with_lib)

ifdef petsc_cuda
bench-hbp2d: $(hbp2d)
bench-evchybparts: $(evchybparts)
else
bench-hbp2d bench-evchybparts:
	@echo "make $@: the program needs CUDA, and this is $(petsc_description)" >&2; exit 1
endif

# all programs of the benchmarks, none of which is run: some call the library's own functions, which change
bench-programs: $(bench_program) $(hosttime) $(exchange) $(fewproducts) $(repeatsolve) $(scaling) $(if $(petsc_cuda),$(cudacalls) $(hbp2d) $(evchybparts))
	@echo "$(words $^) passed, 0 failed"

# Tables and figures of the papers, measured here; make report draws them
papers_output := $(build)/benchmarks/papers-$(BENCH)

papers: bench-program $(if $(petsc_cuda),$(hbp2d) $(evchybparts)) $(build)/examples/ex14
	@$(run_env); status=0; begin=$$(date +%s); for paper in $(PAPERS); do \
	  benchmarks/papers.py $$paper --programs $(build)/benchmarks --output $(papers_output) $(if $(filter full,$(BENCH)),,--quick) $(if $(RESUME),--resume) \
	    $(if $(MINUTES),--minutes $$(awk "BEGIN { left = $(MINUTES) - ($$(date +%s) - $$begin) / 60; print (left > 0.001 ? left : 0.001) }")) --library $(abspath $(library)) \
	    --ex14 $(abspath $(build)/examples/ex14) --mpiexec "$(MPIEXEC)" $(MATRICES) || { status=$$?; [ $$status != 75 ] || break; }; \
	  done; exit $$status

$(bench_program): $(bench_objects) $(library) $(build)/link.txt
	@echo "  LINK $@"
	@$(PCC_LINKER) $(LDFLAGS) -o $@ $(bench_objects) $(with_lib)

$(hbp2d): $(hbp2d_objects) $(build)/link.txt
	@echo "  LINK $@"
	@$(PCC_LINKER) $(LDFLAGS) -o $@ $(hbp2d_objects) $(PETSC_LIB)

$(evchybparts): $(evchybparts_objects) $(build)/link.txt
	@echo "  LINK $@"
	@$(PCC_LINKER) $(LDFLAGS) -o $@ $(evchybparts_objects) $(PETSC_LIB)

$(build)/benchmarks/%.c.o: benchmarks/%.c $(build)/compile.txt
	@mkdir -p $(@D)
	@echo "  CC   $<"
	@$(compile_c) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

$(build)/benchmarks/%.cu.o: benchmarks/%.cu $(build)/compile.txt
	@mkdir -p $(@D)
	@echo "  CUDA $<"
	@$(compile_cuda) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

-include $(bench_objects:.o=.d) $(build)/benchmarks/hosttime.c.d $(build)/benchmarks/exchange.c.d $(addprefix $(build)/benchmarks/,repeatsolve.c.d scaling.c.d stencil.c.d) $(build)/benchmarks/fewproducts.c.d $(build)/benchmarks/hbp2d.cu.d $(build)/benchmarks/evchybparts.cu.d

# ---- Python -------------------------------------------------------------------------------------------------

petsc4py:
	@export PETSC_DIR=$(PETSC_DIR) PETSC_ARCH=$(PETSC_ARCH); python=$$(config/petsc4py) && \
	  echo "Python with petsc4py for $(petsc_description):" && echo "  $$python"

# ---- install ------------------------------------------------------------------------------------------------

install: all
	install -d $(target)/bin $(target)/lib/pkgconfig $(target)/include
	install -m 755 $(program) $(target)/bin/gallop-info
	install -m 755 $(library) $(target)/lib/libgallop.so
	install -m 644 include/petscgallop.h $(target)/include/petscgallop.h
	sed -e 's|@PREFIX@|$(abspath $(PREFIX))|' -e 's|@VERSION@|$(version)|' config/gallop.pc.in >$(target)/lib/pkgconfig/gallop.pc

endif

# ---- a release: what git has, in one file; and what takes an installed library away. They need no PETSc. ----

uninstall:
	rm -f $(target)/bin/gallop-info $(target)/lib/libgallop.so $(target)/include/petscgallop.h $(target)/lib/pkgconfig/gallop.pc

dist:
	@mkdir -p build
	@git archive --prefix=gallop-$(version)/ -o build/gallop-$(version).tar.gz HEAD
	@echo build/gallop-$(version).tar.gz

# ---- docs: they need no PETSc ------------------------------------------------------------------------------

docs:
	@config/docs

# pictures and tables of what make bench and make papers left
REPORT ?= $(wildcard build/*/benchmarks/*.json build/*/benchmarks/papers-*/*.json)

report:
	@test -n "$(strip $(REPORT))" || { echo "make report: nothing is measured yet, see make bench and make papers; REPORT= names files" >&2; exit 1; }
	@python=$$(config/docs --python) && $$python benchmarks/report.py $(REPORT) --output build/report

plots:
	@python=$$(config/docs --python) && $$python benchmarks/plots.py

# ---- the rest -----------------------------------------------------------------------------------------------

# what the benchmark's scripts make of programs that fail
bench-check:
	@python3 benchmarks/test_bench.py

clean:
	rm -rf build
ifneq ($(filter clean,$(MAKECMDGOALS)),)
.NOTPARALLEL: # make clean all: one after the other
endif

help:
	@echo "make               build the library (PETSc is found or built first, as for every target but clean, dist, docs, help, plots, report and uninstall)"
	@echo "make demo          run PETSc's own ex14 and a Matrix Market system with aij, evchyb and, on a GPU, gallop; prints a table with speedups, and what to do next"
	@echo "make examples      compile the programs in examples/, and say where they are"
	@echo "make petsc4py      petsc4py for the same PETSc, found or built once, for examples/solve.py"
	@echo "make check         run all tests; TESTS=mat-ex1% selects, TIMEOUT=s, MPS=1 lets tests share a GPU, VALGRIND=1 and PETSc's other test options work"
	@echo "make kernels       choose runs of test programs, RUNS, that launch each kernel that the tests launch; TESTS, a GPU"
	@echo "make sanitize      run these, or with TESTS=mat-ex1% tests, under compute-sanitizer's TOOLS: $(TOOLS); not those in SEEN, $(SEEN), but with AGAIN=1; MINUTES=8 ends it after so many"
	@echo "make stress        100,000 products of processes that rest at random, by each way of ghost values; PRODUCTS="
	@echo "make check-programs  compile the tests and run none, to take them to a machine with a GPU"
	@echo "make bench         time products beside PETSc's and cuSPARSE's, and print speedups; BENCH=full, MATRICES= adds files, BENCHFLAGS= options"
	@echo "make bench-exchange  time products whose ghost values come from other processes, by CUDA IPC and by PetscSF; RANKS=2,4, BENCHFLAGS= options"
	@echo "make bench-scaling  time products and solves of one problem on 1, 2 and 4 processes, a GPU each; BENCH=full, RANKS=1,2,4, BENCHFLAGS= options"
	@echo "make bench-solves  time whole solves, first and later ones, with PETSc's type, evchyb and gallop, PETSc's examples too; BENCH=full, CASES='ex45|GAMG' selects, RANKS=1,2, BENCHFLAGS= options"
	@echo "make papers        reproduce tables and figures of the papers here; PAPERS=evchyb takes one, BENCH=full, MATRICES= other matrices, RESUME=1 what a run before has not, MINUTES=8 ends it after so many"
	@echo "make report        pictures and tables of what these two measured, build/report/report.html; REPORT= other files"
	@echo "make conformance   run PETSc's own tests with every sequential AIJ matrix replaced by ours; SELECTION=quick takes a part, SELECTION=cusparse on a GPU those of aijcusparse, SELECTION=ksp those of solvers, with ours"
	@echo "make emulate       run kernels on the CPU, without a GPU, in orders that SEED= chooses; CASES=full runs all cases"
	@echo "make archs         compile device code for compute capabilities $(ARCHS), without making a library of it"
	@echo "make numbers       compile device code for other numbers and indices than PETSc's: $(NUMBERS)"
	@echo "make compilers     compile with each of $(COMPILERS) that is here, keeping nothing; ALL=1 all kernels with each, CUDA12=1 with headers of CUDA 12 as well"
	@echo "make install       PREFIX=$(PREFIX), DESTDIR=; make uninstall with the same takes it away"
	@echo "make dist          put the committed files into build/gallop-$(version).tar.gz"
	@echo "make docs          make the site of the documentation, build/site, and check it; make plots draws its pictures again"
	@echo "make clean         remove build/"
	@echo
	@echo "PETSC_DIR and PETSC_ARCH name the PETSc to use. Without them config/petsc builds one under ~/.cache/gallop;"
	@echo "VARIANT=host, debug, single, complex, int64, complex-int64, or cuda-debug and so on, asks for that configuration of it. config/petsc --help says more."

force:
.PHONY: all archs no-examples bench bench-check bench-choice bench-evchybparts bench-exchange bench-fewproducts bench-hbp2d bench-hosttime bench-largest bench-program bench-programs bench-scaling bench-solves check check-programs clean compilers conformance demo dist docs emulate examples help install kernels numbers papers petsc4py plots report sanitize stress uninstall force
