/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of Thrust's: numbers */
#pragma once
#include <cstddef>

namespace thrust
{
template <typename T>
struct Numbers {
  T first;

  T operator[](ptrdiff_t k) const { return first + (T)k; }
};

template <typename T>
Numbers<T> make_counting_iterator(T first)
{
  return {first};
}
} // namespace thrust
