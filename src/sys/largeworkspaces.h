/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* For device.cu only */

#include <cuda_runtime.h>
#include <cstddef>
#include <utility>
#include <vector>

/*
  Larger pieces of workspace: a cudaMalloc() and cudaFree() of some 100 MB take as long as two products of a matrix that needs so much. So the largest piece is kept, for the same stream, unless it is
  more than a part of what was free when it came back first; it goes when memory fails to be had.
*/
class LargeWorkspaces {
public:
  cudaError_t DeviceAllocate(void **ptr, size_t bytes, cudaStream_t stream)
  {
    Piece       piece = {NULL, bytes, stream, 0, false};
    cudaError_t err   = cudaGetDevice(&piece.device);

    if (err == cudaSuccess && kept_.ptr && (kept_.bytes < bytes || kept_.stream != stream || kept_.device != piece.device)) err = FreeAllCached();
    if (err != cudaSuccess) return err;
    if (kept_.ptr) piece = kept_;
    else err = cudaMalloc(&piece.ptr, bytes);
    kept_ = {};
    if (err == cudaSuccess) lent_.push_back(piece);
    *ptr = piece.ptr;
    return err;
  }
  bool Has(const void *ptr) const
  {
    for (const Piece &piece : lent_)
      if (piece.ptr == ptr) return true;
    return false;
  }
  cudaError_t DeviceFree(void *ptr)
  {
    size_t      k   = 0, bytes, total;
    cudaError_t err = cudaSuccess;

    while (lent_[k].ptr != ptr) k++;
    Piece piece = lent_[k];
    lent_.erase(lent_.begin() + (std::ptrdiff_t)k);
    if (!piece.stays) {
      err         = cudaMemGetInfo(&bytes, &total);
      piece.stays = err == cudaSuccess && piece.bytes <= bytes / KeptOfFree;
    }
    if (piece.stays && piece.bytes > kept_.bytes) std::swap(piece, kept_);
    if (err == cudaSuccess && piece.ptr) err = cudaFree(piece.ptr);
    return err;
  }
  cudaError_t FreeAllCached()
  {
    void *const ptr = kept_.ptr;

    kept_ = {};
    return cudaFree(ptr);
  }

private:
  static constexpr size_t KeptOfFree = 16;
  struct Piece {
    void        *ptr;
    size_t       bytes;
    cudaStream_t stream;
    int          device;
    bool         stays;
  };
  Piece              kept_ = {};
  std::vector<Piece> lent_;
};
