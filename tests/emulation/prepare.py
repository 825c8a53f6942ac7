#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Copies src/ and include/gallop/ for the emulation: prepare.py SOURCE TARGET

Kernel launches become calls of emu::Launch(), assembly becomes C++, dynamic shared memory an array, and workspaces get canaries between arrays.
Files that need no more than that are changed by rule; what depends on a file's text is in EDITS, and it is an error if the text is there no more.
"""
import pathlib
import re
import sys

# file: [(text, what takes its place)]
EDITS = {
    'include/gallop/cudaimpl.h': [
        # behind each array of a workspace there are 256 bytes that nobody may write to
        ('    bytes_ += (((size_t)n * sizeof(T)) + 255) / 256 * 256;',
         '    const size_t end = bytes_ + (size_t)n * sizeof(T);\n'
         '    bytes_ += (((size_t)n * sizeof(T)) + 255) / 256 * 256 + 256;\n'
         '    if (base_) emu::Canary(base_ + end, base_ + bytes_, "of a workspace");'),
    ],
    # the copy engine, which counts bytes at a barrier
    'src/mat/impls/csroverlap/csroverlapfetch.cuh': [
        ('    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(once));\n', ''),
        ('      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(Address()));\n'
         '      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");\n', '      *barrier = 0;\n'),
        ('asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(Address()), "r"(bytes) : "memory");', 'emu::ExpectBytes(barrier, bytes);'),
        ('    asm volatile("{\\n.reg .pred done;\\nAGAIN: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\\n@!done bra AGAIN;\\n}" ::"r"(Address()), "r"(parity) : "memory");\n',
         '    emu::WaitForBytes(barrier, parity);\n'),
        ('    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"((unsigned int)__cvta_generic_to_shared(to)), "l"(from), "r"(bytes), "r"(Address()), "l"(once)\n'
         '                 : "memory");\n', '    emu::CopyBytes(barrier, to, from, bytes);\n'),
        ('  asm volatile("{\\n.reg .pred p;\\nsetp.eq.s32 p, %0, 0x5a7b31c3;\\n@p nanosleep.u32 0;\\n}" ::"r"(mixed) : "memory");\n', '  emu::MayYield();\n'),
    ],
    'src/mat/impls/hbp/hbpdevice.h': [('  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));\n', '  mask = (1u << emu::fiber->lane) - 1;\n')],
    'src/mat/impls/hbp/hbpwhole.cu': [('asm volatile("prefetch.global.L2 [%0];" ::"l"(p + k));', '(void)*(const volatile char *)(p + k);')],
    'src/mat/impls/hbp/hbploader.cuh': [('#if __CUDA_ARCH__ >= 800', '#if 0')],
    'src/mat/impls/tiledspmm/tiledspmmcached.cu': [
        ('asm("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(word) : "l"(p));', 'memcpy(&word, p, sizeof(word));'),
        ('asm("ld.global.nc.L1::no_allocate.u64 %0, [%1];" : "=l"(word) : "l"(p));', 'memcpy(&word, p, sizeof(word));'),
        ('asm("ld.global.nc.L1::no_allocate.v2.u64 {%0, %1}, [%2];" : "=l"(u.words.x), "=l"(u.words.y) : "l"(p));', 'memcpy(u.bytes, p, sizeof(T));'),
    ],
    # results are large from 4096 rows on
    'src/mat/impls/fastload/fastload.h': [('#define FASTLOAD_WINDOW  (16 << 20)', '#define FASTLOAD_WINDOW  (16 << 10)')],
    # values of 8192 bytes are many, and so are 64 rows
    'src/mat/impls/base/galloptransposedevice.cu': [('Sampled = 1024;', 'Sampled = 16;'), ('Cheap   = 64 << 20;', 'Cheap   = 8 << 10;')],
    # what the GPU decides, and what it publishes: cg.cpp compares both with the host
    'src/ksp/ksp/gallopcgdevice.cu': [
        ('  if (IsFinite(dpi) && dpi != (PetscScalar)0 &&',
         '  if (GallopGlobalThread() == 0) Decides(NumberOf(s), dpi, s.state->dpi[1 - s.now]);\n  if (IsFinite(dpi) && dpi != (PetscScalar)0 &&'),
    ],
    'src/ksp/ksp/gallopfused.cuh': [
        ('  __threadfence_system();\n  *(volatile PetscInt64 *)&record->number = number;',
         '  Publishes(number, stopped);\n  __threadfence_system();\n  *(volatile PetscInt64 *)&record->number = number;'),
    ],
    'src/ksp/ksp/gallopcgsolve.c': [
        ('    PetscCall(CheckDpi(ksp, s->method.single, i, dpi, dpiold));',
         '    if (!s->method.local) HostDecides(s->number[i % GALLOP_RECORDS], i, dpi, dpiold);\n    PetscCall(CheckDpi(ksp, s->method.single, i, dpi, dpiold));'),
    ],
}
# file: a line from which on nothing is wanted
ENDS = {}


def closing(text, at, opens, closes):
    """The place of the bracket that closes the one at this place"""
    depth = 0
    while True:
        depth += (text[at] == opens) - (text[at] == closes)
        if not depth:
            return at
        at += 1


def launches(text):
    """kernel<<<configuration>>>(arguments) becomes emu::Launch("kernel", emu::Cfg(configuration), kernel, arguments)"""
    while (at := text.find('<<<')) >= 0:
        kernel = re.search(r'[\w:]+(<[^;{}]*>)?$', text[:at]).group()
        end = text.index('>>>', at)
        close = closing(text, end + 3, '(', ')')
        arguments = text[end + 4:close]
        text = (text[:at - len(kernel)] + 'emu::Launch("%s", emu::Cfg(%s), %s%s)'
                % (kernel, text[at + 3:end], kernel, ', ' + arguments if arguments.strip() else '') + text[close + 1:])
    return text


def dynamic(text):
    """Shared memory whose size the launch tells: as much as any kernel may have"""
    return re.sub(r'extern __shared__ __align__\(\d+\) unsigned char\s+(\w+)\[\];', r'static thread_local __attribute__((aligned(128))) unsigned char \1[48 << 10];', text)


def assembly(text):
    """A load of bytes that may not be there: a copy. All assembly is of this kind in files that the tests include; elsewhere it fails to compile."""
    start = text.find('template <int Bytes, typename Word>\n')
    end = text.find('/* Matrix data that is there, or bits of 0.')
    if 0 <= start < end:
        text = (text[:start] + 'template <int Bytes, typename Word>\nstatic inline void GallopLoadWordOnceIf(const void *p, bool there, Word *word)\n'
                '{\n  if (there) memcpy(word, p, Bytes);\n}\n\n' + text[end:])
        start = text.index('#pragma unroll\n    for (int k = 0; k < Words; k += 2)\n      asm')
        end = text.index('  }\n  return u.t;', start)
        text = text[:start] + '    if (there) memcpy(u.word, p, sizeof(T));\n' + text[end:]
    return text


def dynamic(text):
    """Shared memory of the size that a launch asks for"""
    return re.sub(r'extern __shared__\s+(?:__align__\(\d+\)\s+)?(\w[\w ]*\w)\s+(\w+)\[\];', r'\1 *const \2 = (\1 *)emu::block->dynamic;', text)


def main():
    source, target = map(pathlib.Path, sys.argv[1:])
    for file in sorted([*source.glob('src/**/*'), *source.glob('include/gallop/*')]):
        if file.suffix not in ('.c', '.h', '.cu', '.cuh'):
            continue
        name = str(file.relative_to(source))
        text = file.read_text()
        for old, new in EDITS.get(name, []):
            if text.count(old) != 1:
                sys.exit('%s: %s has this text %d times, not once: %s' % (sys.argv[0], name, text.count(old), old))
            text = text.replace(old, new)
        if name in ENDS:
            text = text[:text.index(ENDS[name])]
        if name.startswith('include/'):
            text = assembly(text)
        copy = target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text('#line 1 "%s"\n' % name + launches(dynamic(text)))


if __name__ == '__main__':
    main()
