/* main.c: fill.c alone, under the address sanitizer: random arrays of all kinds, whose buffers end where their last
 * value does, are copied into vectors that are as large as they must be, and compared value by value as text.
 * usage: main SEED ROUNDS */
#include "../fill.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct duck_api duck;

/* A vector as DuckDB has them, as far as fill.c sees it. */
struct vec {
  const struct duck_node *node;
  int64_t n; /* elements for which there is room */
  char *data;
  uint64_t *valid;
  char **longs; /* texts that are not within */
  struct vec *child[4];
  int64_t size; /* of a list's elements */
};

static int width(const struct duck_node *t) {
  switch (t->kind) {
  case DUCK_NULL: return 4;
  case DUCK_BIT: return 1;
  case DUCK_COPY: return t->size;
  case DUCK_HALF: return 4;
  case DUCK_WIDEN:
  case DUCK_NARROW:
  case DUCK_MULTIPLY: return t->out;
  case DUCK_DENSE:
  case DUCK_SPARSE: return 1; /* the number of the member */
  default: return 16;
  }
}

/* shown is what the values of a vector are: those that codes and runs stand for. */
static const struct duck_node *shown(const struct duck_node *t) {
  while (t->kind == DUCK_DICTIONARY || t->kind == DUCK_RUNS) t = t->children[0];
  return t;
}

static struct vec *new_vec(const struct duck_node *t, int64_t n) {
  struct vec *v = calloc(1, sizeof *v);
  v->node = t = shown(t);
  v->n = n;
  v->data = malloc((size_t)(n * width(t)) + 1);
  v->longs = calloc((size_t)n + 1, sizeof *v->longs);
  int64_t each = t->kind == DUCK_ARRAY ? t->size : 1;
  for (int k = 0; k < t->n; k++) {
    v->child[k] = new_vec(t->children[k], t->kind == DUCK_STRUCT || t->kind == DUCK_ARRAY || t->kind == DUCK_DENSE ||
                                                  t->kind == DUCK_SPARSE ? n * each : 0);
  }
  return v;
}

static void free_vec(struct vec *v) {
  for (int k = 0; k < 4; k++) {
    if (v->child[k]) free_vec(v->child[k]);
  }
  for (int64_t i = 0; i < v->n; i++) free(v->longs[i]);
  free(v->longs), free(v->data), free(v->valid), free(v);
}

static void *get_data(duck_handle v) { return ((struct vec *)v)->data; }
static uint64_t *get_validity(duck_handle v) { return ((struct vec *)v)->valid; }
static void ensure(duck_handle h) {
  struct vec *v = h;
  size_t words = ((size_t)v->n + 63) / 64;
  if (!v->valid) memset(v->valid = malloc(8 * words + 1), 255, 8 * words);
}
static void assign(duck_handle h, duck_idx i, const char *p, duck_idx n) {
  struct vec *v = h;
  free(v->longs[i]);
  v->longs[i] = malloc(n + 1);
  memcpy(v->longs[i], p, n);
  char *text = v->data + 16 * i;
  memcpy(text, &(uint32_t){(uint32_t)n}, 4);
  if (n <= 12) memcpy(memset(text + 4, 0, 12), p, n);
  else memcpy(text + 4, p, 4), memcpy(text + 8, &v->longs[i], 8);
}
static duck_handle list_child(duck_handle v) { return ((struct vec *)v)->child[0]; }
static int set_size(duck_handle v, duck_idx n) { return ((struct vec *)v)->size = (int64_t)n, 0; }
static int reserve(duck_handle h, duck_idx n) {
  struct vec *v = h;
  free_vec(v->child[0]);
  v->child[0] = new_vec(v->node->children[0], (int64_t)n);
  return 0;
}
/* The first field of a union's vector is the number of the member: here it is the vector itself. */
static duck_handle struct_child(duck_handle h, duck_idx k) {
  struct vec *v = h;
  if (v->node->kind == DUCK_STRUCT) return v->child[k];
  return k ? v->child[k - 1] : v;
}

static uint64_t state;
static uint64_t any(void) {
  state += UINT64_C(0x9e3779b97f4a7c15);
  uint64_t z = state;
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}
static int64_t below(int64_t n) { return (int64_t)(any() % (uint64_t)n); }

static struct duck_node *node(int kind, int size, int out, int n) {
  struct duck_node *t = calloc(1, sizeof *t);
  t->kind = kind, t->size = size, t->out = out, t->is_signed = true, t->factor = 1000, t->n = n;
  t->children = calloc((size_t)n + 1, sizeof *t->children);
  return t;
}

static void free_node(struct duck_node *t) {
  for (int k = 0; k < t->n; k++) free_node(t->children[k]);
  free(t->children), free(t);
}

static struct duck_node *random_type(int depth) {
  static const int leaves[] = {DUCK_NULL, DUCK_BIT, DUCK_COPY, DUCK_WIDEN, DUCK_NARROW, DUCK_HALF, DUCK_MULTIPLY,
                               DUCK_TEXT, DUCK_BYTES, DUCK_LARGE_TEXT, DUCK_VIEW_TEXT, DUCK_FIXED_BYTES, DUCK_UUID};
  static const int nests[] = {DUCK_LIST, DUCK_LARGE_LIST, DUCK_LIST_VIEW, DUCK_ARRAY, DUCK_STRUCT, DUCK_MAP, DUCK_DENSE,
                              DUCK_SPARSE, DUCK_DICTIONARY, DUCK_RUNS};
  struct duck_node *t;
  if (!depth || !below(3)) {
    int kind = leaves[below(sizeof leaves / sizeof *leaves)];
    int size = kind == DUCK_NARROW ? 16 : kind == DUCK_WIDEN || kind == DUCK_MULTIPLY ? 4 : 1 << below(5);
    if (kind == DUCK_FIXED_BYTES) size = (int)below(30);
    if (kind == DUCK_UUID) size = 16;
    return node(kind, size, kind == DUCK_WIDEN ? 16 : 8, 0);
  }
  int kind = nests[below(sizeof nests / sizeof *nests)];
  int n = kind == DUCK_STRUCT || kind == DUCK_DENSE || kind == DUCK_SPARSE ? 1 + (int)below(3) : 1;
  t = node(kind, kind == DUCK_ARRAY ? 1 + (int)below(4) : 4, 0, n);
  for (int k = 0; k < n; k++) {
    t->children[k] = random_type(depth - 1);
    t->codes[k] = (int8_t)k;
  }
  return t;
}

static void *exactly(int64_t n) {
  char *p = malloc((size_t)n + !n);
  for (int64_t i = 0; i < n; i++) p[i] = (char)(any() & 127);
  return p;
}

static struct ArrowArray *array(const struct duck_node *t, int64_t n);

static void texts_of(struct ArrowArray *a, int kind, int64_t all) {
  int64_t at = 0;
  if (kind == DUCK_VIEW_TEXT) {
    char *views = exactly(16 * all), *data = exactly(1000);
    for (int64_t i = 0; i < all; i++) {
      int32_t length = (int32_t)below(below(4) ? 13 : 40), buffer = 0, offset = (int32_t)below(1001 - length);
      memcpy(views + 16 * i, &length, 4);
      if (length > 12) memcpy(views + 16 * i + 8, &buffer, 4), memcpy(views + 16 * i + 12, &offset, 4);
    }
    a->buffers[1] = views, a->buffers[2] = data, a->n_buffers = 3;
    return;
  }
  bool large = kind == DUCK_LARGE_TEXT;
  int64_t most = below(2) ? 13 : 40; /* of three in four */
  char *offsets = exactly((all + 1) * (large ? 8 : 4));
  for (int64_t i = 0; i <= all; i++) {
    if (large) ((int64_t *)offsets)[i] = at;
    else ((int32_t *)offsets)[i] = (int32_t)at;
    if (i < all) at += below(below(4) ? most : 40);
  }
  a->buffers[1] = offsets, a->buffers[2] = exactly(at), a->n_buffers = 3;
}

static void lists_of(struct ArrowArray *a, const struct duck_node *t, int64_t all) {
  int64_t at = 0;
  char *offsets = exactly((all + 1) * 8), *sizes = exactly(all * 4);
  for (int64_t i = 0; i <= all; i++) {
    int64_t n = below(5);
    if (t->kind == DUCK_LARGE_LIST) ((int64_t *)offsets)[i] = at;
    else ((int32_t *)offsets)[i] = (int32_t)at;
    if (i < all) ((int32_t *)sizes)[i] = (int32_t)n, at += n;
  }
  a->buffers[1] = offsets, a->buffers[2] = sizes, a->n_buffers = 3;
  a->children[0] = array(t->children[0], at);
}

static void unions_of(struct ArrowArray *a, const struct duck_node *t, int64_t all) {
  char *codes = exactly(all);
  int32_t *offsets = exactly(4 * all), used[4] = {0};
  for (int64_t i = 0; i < all; i++) {
    codes[i] = (char)below(t->n);
    offsets[i] = used[(int)codes[i]]++;
  }
  a->buffers[0] = codes, a->buffers[1] = offsets, a->n_buffers = 2;
  for (int k = 0; k < t->n; k++) a->children[k] = array(t->children[k], t->kind == DUCK_DENSE ? used[k] : all);
}

static void numbers_of(struct ArrowArray *a, const struct duck_node *t, int64_t all) {
  char *p = exactly(t->kind == DUCK_BIT ? (all + 7) / 8 : all * (t->kind == DUCK_HALF ? 2 : t->size));
  for (int64_t i = 0; t->kind == DUCK_NARROW && i < all; i++) {
    ((int64_t *)p)[2 * i] = (int64_t)any();
    ((int64_t *)p)[2 * i + 1] = ((int64_t *)p)[2 * i] >> 63;
  }
  a->buffers[1] = p, a->n_buffers = 2;
}

/* array makes one with n elements from a random offset on. */
static struct ArrowArray *array(const struct duck_node *t, int64_t n) {
  struct ArrowArray *a = calloc(1, sizeof *a);
  a->offset = below(3) ? 0 : below(70);
  a->length = n, a->buffers = calloc(3, sizeof *a->buffers), a->children = calloc(4, sizeof *a->children);
  int64_t all = n + a->offset;
  if (t->kind != DUCK_NULL && t->kind != DUCK_RUNS && below(2)) {
    a->buffers[0] = exactly((all + 7) / 8), a->null_count = -1;
  }
  switch (t->kind) {
  case DUCK_NULL: break;
  case DUCK_TEXT:
  case DUCK_BYTES:
  case DUCK_LARGE_TEXT:
  case DUCK_VIEW_TEXT: texts_of(a, t->kind, all); break;
  case DUCK_LIST:
  case DUCK_LARGE_LIST:
  case DUCK_LIST_VIEW:
  case DUCK_MAP: lists_of(a, t, all); break;
  case DUCK_ARRAY: a->n_buffers = 1, a->children[0] = array(t->children[0], all * t->size); break;
  case DUCK_STRUCT:
    a->n_buffers = 1;
    for (int k = 0; k < t->n; k++) a->children[k] = array(t->children[k], all);
    break;
  case DUCK_DENSE:
  case DUCK_SPARSE: free((void *)a->buffers[0]), a->null_count = 0, unions_of(a, t, all); break;
  case DUCK_DICTIONARY: {
    int32_t *codes = exactly(4 * all);
    for (int64_t i = 0; i < all; i++) codes[i] = (int32_t)below(9);
    a->buffers[1] = codes, a->n_buffers = 2, a->dictionary = array(t->children[0], 9);
    break;
  }
  case DUCK_RUNS: {
    struct duck_node *number = node(DUCK_COPY, 4, 4, 0);
    struct ArrowArray *ends = a->children[0] = array(number, all / 3 + 1);
    free_node(number);
    free((void *)ends->buffers[0]), ends->buffers[0] = NULL, ends->null_count = 0;
    int32_t *to = (int32_t *)ends->buffers[1] + ends->offset;
    for (int64_t i = 0; i < ends->length; i++) to[i] = (int32_t)(3 * (i + 1));
    a->children[1] = array(t->children[0], ends->length);
    break;
  }
  default: numbers_of(a, t, all);
  }
  return a;
}

static void free_array(struct ArrowArray *a) {
  for (int k = 0; k < 4; k++) {
    if (a->children[k]) free_array(a->children[k]);
  }
  for (int k = 0; k < 3; k++) free((void *)a->buffers[k]);
  if (a->dictionary) free_array(a->dictionary);
  free(a->buffers), free(a->children), free(a);
}

/* What is compared: texts of values, in a buffer that grows. */
struct out {
  char *p;
  size_t n, room;
};
static void add(struct out *o, const void *p, size_t n) {
  if (o->n + n > o->room) o->p = realloc(o->p, o->room = 2 * (o->n + n) + 64);
  if (n) memcpy(o->p + o->n, p, n);
  o->n += n;
}
static void word(struct out *o, const char *s) { add(o, s, strlen(s)); }

static double half_of(uint16_t h) {
  double v = (h & 1023) * 0x1p-24;
  if (h >> 10 & 31) {
    v = (1 + (h & 1023) / 1024.0) * 0x1p-15;
    for (int k = h >> 10 & 31; k > 0; k--) v *= 2;
  }
  return v;
}

/* from_array shows element i, counted from the array's offset. */
static void from_array(struct out *o, const struct duck_node *t, const struct ArrowArray *a, int64_t i) {
  int64_t at = i + a->offset;
  const uint8_t *valid = t->kind == DUCK_DENSE || t->kind == DUCK_SPARSE || t->kind == DUCK_RUNS ? NULL : a->buffers[0];
  if (t->kind == DUCK_NULL || (valid && !(valid[at / 8] >> at % 8 & 1))) return word(o, "null ");
  const char *b = a->buffers[1];
  switch (t->kind) {
  case DUCK_BIT: return word(o, b[at / 8] >> at % 8 & 1 ? "1 " : "0 ");
  case DUCK_COPY:
  case DUCK_FIXED_BYTES: return add(o, b + at * t->size, (size_t)t->size);
  case DUCK_UUID: {
    unsigned char number[16]; /* as this machine has it: the lowest byte is the first */
    for (int k = 0; k < 16; k++) number[k] = (unsigned char)b[16 * at + 15 - k];
    number[15] = (unsigned char)(number[15] + 128);
    return add(o, number, 16);
  }
  case DUCK_HALF: {
    uint16_t h = ((const uint16_t *)b)[at];
    uint32_t endless = 0x7f800000 | (uint32_t)(h & 1023) << 13; /* infinity, or none at all */
    float f = (float)half_of(h);
    return add(o, (h >> 10 & 31) == 31 ? (const void *)&endless : &f, 4);
  }
  case DUCK_WIDEN:
  case DUCK_NARROW:
  case DUCK_MULTIPLY: {
    int64_t v = t->size == 16 ? ((const int64_t *)b)[2 * at] : ((const int32_t *)b)[at];
    if (t->kind == DUCK_MULTIPLY) v *= t->factor;
    add(o, &v, 8), v = v >> 63;
    return add(o, &v, t->out == 16 ? 8 : 0);
  }
  case DUCK_TEXT:
  case DUCK_BYTES: {
    const int32_t *p = (const int32_t *)b + at;
    return add(o, (const char *)a->buffers[2] + p[0], (size_t)(p[1] - p[0])), word(o, ".");
  }
  case DUCK_LARGE_TEXT: {
    const int64_t *p = (const int64_t *)b + at;
    return add(o, (const char *)a->buffers[2] + p[0], (size_t)(p[1] - p[0])), word(o, ".");
  }
  case DUCK_VIEW_TEXT: {
    int32_t view[4];
    memcpy(view, b + 16 * at, 16);
    add(o, view[0] > 12 ? (const char *)a->buffers[2] + view[3] : b + 16 * at + 4, (size_t)view[0]);
    return word(o, ".");
  }
  case DUCK_ARRAY:
    for (int k = 0; k < t->size; k++) from_array(o, t->children[0], a->children[0], at * t->size + k);
    return;
  case DUCK_STRUCT:
    for (int k = 0; k < t->n; k++) from_array(o, t->children[k], a->children[k], at);
    return;
  case DUCK_DENSE:
  case DUCK_SPARSE: {
    int k = ((const int8_t *)a->buffers[0])[at];
    add(o, "01234" + k, 1);
    return from_array(o, t->children[k], a->children[k], t->kind == DUCK_DENSE ? ((const int32_t *)b)[at] : at);
  }
  case DUCK_DICTIONARY: return from_array(o, t->children[0], a->dictionary, ((const int32_t *)b)[at]);
  case DUCK_RUNS: return from_array(o, t->children[0], a->children[1], at / 3);
  }
  int64_t from = t->kind == DUCK_LARGE_LIST ? ((const int64_t *)b)[at] : ((const int32_t *)b)[at];
  word(o, "[");
  for (int64_t k = 0; k < ((const int32_t *)a->buffers[2])[at]; k++) {
    from_array(o, t->children[0], a->children[0], from + k);
  }
  word(o, "]");
}

/* from_vec shows element i of a vector. */
static void from_vec(struct out *o, const struct vec *v, int64_t i) {
  const struct duck_node *t = v->node;
  bool null = v->valid && !(v->valid[i / 64] >> i % 64 & 1);
  if (null) return word(o, "null ");
  const char *p = v->data + i * width(t);
  switch (t->kind) {
  case DUCK_BIT: return word(o, *p ? "1 " : "0 ");
  case DUCK_COPY:
  case DUCK_HALF:
  case DUCK_UUID:
  case DUCK_WIDEN:
  case DUCK_NARROW:
  case DUCK_MULTIPLY: return add(o, p, (size_t)width(t));
  case DUCK_STRUCT:
    for (int k = 0; k < t->n; k++) from_vec(o, v->child[k], i);
    return;
  case DUCK_ARRAY:
    for (int k = 0; k < t->size; k++) from_vec(o, v->child[0], i * t->size + k);
    return;
  case DUCK_DENSE:
  case DUCK_SPARSE: return add(o, "01234" + *p, 1), from_vec(o, v->child[(int)*p], i);
  case DUCK_LIST:
  case DUCK_LARGE_LIST:
  case DUCK_LIST_VIEW:
  case DUCK_MAP: {
    uint64_t entry[2];
    memcpy(entry, p, 16);
    word(o, "[");
    for (uint64_t k = 0; k < entry[1]; k++) from_vec(o, v->child[0], (int64_t)(entry[0] + k));
    return word(o, "]");
  }
  }
  uint32_t n;
  memcpy(&n, p, 4);
  const char *from = p + 4;
  if (n > 12) {
    memcpy(&from, p + 8, 8);
    if (memcmp(from, p + 4, 4)) word(o, "other first bytes ");
  }
  add(o, from, n);
  if (t->kind != DUCK_FIXED_BYTES) word(o, ".");
}

static bool round_of(uint64_t seed) {
  state = seed;
  struct duck_node *t = random_type(3);
  int64_t all = 1 + below(300), from = below(all), n = 1 + below(all - from);
  struct ArrowArray *a = array(t, all);
  struct vec *v = new_vec(t, n);
  struct duck_failure f = {0};
  struct out x = {0}, y = {0};
  bool ok = duck_fill(t, a, from, n, v, &f);
  for (int64_t i = 0; ok && i < n; i++) from_array(&x, t, a, from + i), from_vec(&y, v, i);
  if (!ok) printf("seed %llu: kind %d: %s\n", (unsigned long long)seed, t->kind, f.why);
  if (ok && (x.n != y.n || (x.n && memcmp(x.p, y.p, x.n)))) {
    printf("seed %llu: kind %d: expected %.200s, found %.200s\n", (unsigned long long)seed, t->kind, x.n ? x.p : "",
           y.n ? y.p : "");
    ok = false;
  }
  free(x.p), free(y.p), free_vec(v), free_array(a), free_node(t);
  return ok;
}

int main(int argc, char **argv) {
  duck.vector_get_data = get_data, duck.vector_get_validity = get_validity;
  duck.vector_ensure_validity_writable = ensure, duck.vector_assign_string_element_len = assign;
  duck.list_vector_get_child = list_child, duck.list_vector_set_size = set_size, duck.list_vector_reserve = reserve;
  duck.struct_vector_get_child = struct_child, duck.array_vector_get_child = list_child;
  uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1, rounds = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000;
  int bad = 0;
  for (uint64_t i = 0; i < rounds && bad < 5; i++) bad += !round_of(first + i);
  printf("COUNT fill.c: %llu arrays, %d wrong\n", (unsigned long long)rounds, bad);
  return bad > 0;
}
