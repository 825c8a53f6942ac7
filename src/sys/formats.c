/* SPDX-License-Identifier: BSD-2-Clause */
#include <gallop/formatimpl.h>

/* Every format, once: names of types, options and log events derive from here */
extern const GallopFormat GallopFormat_EVCHYB, GallopFormat_CSROVERLAP, GallopFormat_FASTLOAD, GallopFormat_HBP, GallopFormat_GALLOP;

PETSC_INTERN const GallopFormat *const GallopFormats[];
const GallopFormat *const              GallopFormats[] = {&GallopFormat_EVCHYB, &GallopFormat_CSROVERLAP, &GallopFormat_FASTLOAD, &GallopFormat_HBP, &GallopFormat_GALLOP, NULL};
