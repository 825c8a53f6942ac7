/* SPDX-License-Identifier: BSD-2-Clause */
/* The same with as many lines of packed storage under way as in single precision: columns of 16 bits have code of their own then */
#define EVCHYB_PACK_LINES 8
#include "clustersproduct.cpp"
