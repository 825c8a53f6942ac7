/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of CUB's: what there is of it */
#pragma once
#include "device/device_radix_sort.cuh"
#include "device/device_scan.cuh"
