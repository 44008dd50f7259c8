// What the parts of the test share.
#include <stdio.h>
#include <stdlib.h>

#include "../stoa.h"

#define CHECK(x)                                                         \
  do {                                                                   \
    if (!(x)) {                                                          \
      fprintf(stderr, "%s:%d: expected %s\n", __FILE__, __LINE__, #x);   \
      exit(1);                                                           \
    }                                                                    \
  } while (0)

stoa_t open_table(const char *name);

// read_all counts a scan's rows and adds up the values of its first column, an int32; *rc is what ended it.
int64_t read_all(stoa_t t, const char *spec, int64_t *sum, int *rc, char *message, size_t size);

void holds(void);
