/* shim.h: between the Go part of the shim and its C part. */
#ifndef STOA_DUCK_SHIM_H
#define STOA_DUCK_SHIM_H

#include "abi.h"

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void **buffers;
  struct ArrowArray **children;
  struct ArrowArray *dictionary;
  void (*release)(struct ArrowArray *);
  void *private_data;
};
#endif

extern struct duck_api duck;

/* How the values of an Arrow array become those of a DuckDB vector. */
enum duck_kind {
  DUCK_NULL,
  DUCK_BIT,       /* one bit a value becomes one byte */
  DUCK_COPY,      /* size bytes a value, as they are */
  DUCK_WIDEN,     /* an integer of size bytes becomes one of size out */
  DUCK_NARROW,    /* the other way round; what does not fit is an error */
  DUCK_HALF,      /* a 16-bit float becomes one of 32 bits */
  DUCK_MULTIPLY,  /* an integer of size bytes, times factor, becomes one of out bytes */
  DUCK_DIVIDE,    /* the same, divided; a remainder is an error */
  DUCK_TEXT,      /* 32-bit offsets; checked to be UTF-8 */
  DUCK_BYTES,
  DUCK_LARGE_TEXT,
  DUCK_LARGE_BYTES,
  DUCK_VIEW_TEXT,
  DUCK_VIEW_BYTES,
  DUCK_FIXED_BYTES, /* size bytes a value */
  DUCK_UUID,        /* 16 bytes become the number that DuckDB has for them */
  DUCK_SPAN,        /* a duration: an interval of size bytes times factor (or divided by -factor) microseconds */
  DUCK_MONTHS,
  DUCK_DAYS,       /* days and milliseconds */
  DUCK_MONTH_NANO, /* months, days, nanoseconds */
  DUCK_LIST,
  DUCK_LARGE_LIST,
  DUCK_LIST_VIEW,
  DUCK_LARGE_LIST_VIEW,
  DUCK_ARRAY, /* size elements a value */
  DUCK_STRUCT,
  DUCK_MAP,
  DUCK_DENSE,
  DUCK_SPARSE,
  DUCK_DICTIONARY, /* codes of size bytes; child 0 has the values */
  DUCK_RUNS,       /* ends of size bytes; child 0 has the values */
  DUCK_NOTHING,    /* a struct without fields: false for each value */
};

struct duck_node {
  int kind;
  int size;
  int out;
  bool is_signed;
  int64_t factor;
  int8_t codes[128]; /* of a union: which field a type code stands for; -1: none */
  int n;
  struct duck_node **children;
};

struct duck_node *duck_new_node(int kind, int n);
void duck_free_node(struct duck_node *node);

/* What a scan keeps for all threads. */
struct duck_scan {
  uintptr_t go; /* what the Go part has of it */
  int columns;
  struct duck_node **nodes; /* one a projected column; NULL: nothing is wanted of it. They belong to the bind data */
  int *fields;              /* which child of a batch it is */
};

struct duck_scan *duck_new_scan(uintptr_t go, int columns);
void duck_set_column(struct duck_scan *scan, int i, struct duck_node *node, int field);

void duck_from_slots(const void *const *slots);
int duck_register(duck_handle connection, const char *name, uintptr_t function, int parameters,
                  const char **named, int n_named, bool projects);
void duck_replace(duck_handle database, uintptr_t replacer);
void duck_set_bind(duck_handle info, uintptr_t bound);
void duck_set_init(duck_handle info, struct duck_scan *scan);

/* What the Go part calls, as it cannot call through pointers. */
#define DUCK_GO(X)                                                                                                   \
  X(int, connect, (duck_handle a, duck_handle *b), (a, b))                                                           \
  X(const char *, library_version, (void), ())                                                                       \
  X(duck_handle, create_logical_type, (int a), (a))                                                                  \
  X(duck_handle, create_list_type, (duck_handle a), (a))                                                             \
  X(duck_handle, create_array_type, (duck_handle a, duck_idx b), (a, b))                                             \
  X(duck_handle, create_map_type, (duck_handle a, duck_handle b), (a, b))                                            \
  X(duck_handle, create_union_type, (duck_handle *a, const char **b, duck_idx c), (a, b, c))                         \
  X(duck_handle, create_struct_type, (duck_handle *a, const char **b, duck_idx c), (a, b, c))                        \
  X(duck_handle, create_decimal_type, (uint8_t a, uint8_t b), (a, b))                                                \
  X(int, get_type_id, (duck_handle a), (a))                                                                          \
  X(duck_idx, bind_get_parameter_count, (duck_handle a), (a))                                                        \
  X(duck_handle, bind_get_parameter, (duck_handle a, duck_idx b), (a, b))                                            \
  X(duck_handle, bind_get_named_parameter, (duck_handle a, const char *b), (a, b))                                   \
  X(char *, get_varchar, (duck_handle a), (a))                                                                       \
  X(bool, is_null_value, (duck_handle a), (a))                                                                       \
  X(duck_idx, init_get_column_count, (duck_handle a), (a))                                                           \
  X(duck_idx, init_get_column_index, (duck_handle a, duck_idx b), (a, b))

#define DUCK_INLINE(result, name, arguments, given)                                                                  \
  static inline result duck_##name arguments { return duck.name given; }
DUCK_GO(DUCK_INLINE)
#undef DUCK_INLINE

static inline void duck_bind_add_result_column(duck_handle a, const char *b, duck_handle c) {
  duck.bind_add_result_column(a, b, c);
}
static inline void duck_bind_set_cardinality(duck_handle a, duck_idx b, bool c) { duck.bind_set_cardinality(a, b, c); }
static inline void duck_bind_set_error(duck_handle a, const char *b) { duck.bind_set_error(a, b); }
static inline void duck_init_set_error(duck_handle a, const char *b) { duck.init_set_error(a, b); }
static inline void duck_init_set_max_threads(duck_handle a, duck_idx b) { duck.init_set_max_threads(a, b); }
static inline void duck_destroy_type(duck_handle a) { duck.destroy_logical_type(&a); }
static inline void duck_destroy_value(duck_handle a) { duck.destroy_value(&a); }
static inline void duck_disconnect(duck_handle a) { duck.disconnect(&a); }
static inline void duck_free(void *a) { duck.free(a); }

#endif
