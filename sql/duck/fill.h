/* fill.h: Arrow arrays to DuckDB's vectors. */
#ifndef STOA_DUCK_FILL_H
#define STOA_DUCK_FILL_H

#include "shim.h"

struct duck_failure {
  int64_t row; /* of the n that were wanted, of the innermost values */
  char why[200];
};

/* duck_fill copies n elements of an array from a position on to the first n of a vector. */
bool duck_fill(const struct duck_node *node, const struct ArrowArray *a, int64_t from, int64_t n, duck_handle vector,
               struct duck_failure *f);

/* duck_fill_nulls makes the first n values of a vector null. */
void duck_fill_nulls(int64_t n, duck_handle vector);

#endif
