/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* For device.cu only */

#include <cuda_runtime.h>
#include <algorithm>
#include <cstddef>
#include <vector>

/*
  Larger pieces of memory on the GPU: a cudaMalloc() of some 100 MB takes 150 microseconds or more, as long as two products of a matrix that needs so much, and a cudaFree() likewise. So some are
  kept for the same stream, up to a part of what is free when a piece comes back; they go when memory fails to be had.
*/
class LargePieces {
public:
  /*
    part: all that is kept is at most this part of what is free; most: pieces; slack: how many times larger than needed a piece may be; then the oldest goes first. 0: any size, and the smallest goes
    first. drops: whether one that is of no use goes before another is asked for, and what is free is asked once for each, since they come back often
  */
  LargePieces(size_t part, size_t most, double slack, bool drops) : part_(part), most_(most), slack_(slack), drops_(drops) { }
  cudaError_t DeviceAllocate(void **ptr, size_t bytes, cudaStream_t stream)
  {
    Piece       piece = {NULL, bytes, stream, 0, 0};
    cudaError_t err   = cudaGetDevice(&piece.device);
    auto        best  = kept_.end();

    for (auto k = kept_.begin(); k != kept_.end(); k++)
      if (k->device == piece.device && k->stream == stream && k->bytes >= bytes && (slack_ == 0 || (double)k->bytes <= slack_ * (double)bytes) && (best == kept_.end() || k->bytes < best->bytes))
        best = k;
    if (err == cudaSuccess && best != kept_.end()) {
      piece = *best;
      kept_.erase(best);
    } else {
      if (err == cudaSuccess && drops_) err = FreeAllCached();
      if (err == cudaSuccess) err = cudaMalloc(&piece.ptr, bytes);
    }
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
    const auto  at    = std::find_if(lent_.begin(), lent_.end(), [=](const Piece &piece) { return piece.ptr == ptr; });
    size_t      all   = 0, free, total;
    Piece       piece = *at;
    cudaError_t err   = cudaSuccess;

    lent_.erase(at);
    if (!piece.limit || !drops_) {
      err         = cudaMemGetInfo(&free, &total);
      piece.limit = err == cudaSuccess ? std::max(free / part_, (size_t)1) : 1;
    }
    if (piece.bytes > piece.limit) return First(err, cudaFree(piece.ptr));
    kept_.push_back(piece);
    for (const Piece &kept : kept_) all += kept.bytes;
    while (kept_.size() > most_ || all > piece.limit) {
      const auto goes = slack_ == 0 ? std::min_element(kept_.begin(), kept_.end(), [](const Piece &a, const Piece &b) { return a.bytes < b.bytes; }) : kept_.begin();

      all -= goes->bytes;
      err = First(err, cudaFree(goes->ptr));
      kept_.erase(goes);
    }
    return err;
  }
  cudaError_t FreeAllCached()
  {
    cudaError_t err = cudaSuccess;

    for (const Piece &piece : kept_) err = First(err, cudaFree(piece.ptr));
    kept_.clear();
    return err;
  }

private:
  static cudaError_t First(cudaError_t err, cudaError_t next) { return err == cudaSuccess ? next : err; }
  struct Piece {
    void        *ptr;
    size_t       bytes;
    cudaStream_t stream;
    int          device;
    size_t       limit; /* of what is kept, 0 until it came back */
  };
  const size_t       part_, most_;
  const double       slack_;
  const bool         drops_;
  std::vector<Piece> kept_, lent_;
};
