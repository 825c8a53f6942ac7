/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of Thrust's: what a function makes of an array */
#pragma once
#include <cstddef>

namespace thrust
{
template <typename From, typename Op>
struct Transformed {
  From from;
  Op   op;

  auto operator[](ptrdiff_t k) const { return op(from[k]); }
};

template <typename From, typename Op>
Transformed<From, Op> make_transform_iterator(From from, Op op)
{
  return {from, op};
}
} // namespace thrust
