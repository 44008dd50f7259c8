/* fill.c: the values of Arrow arrays become those of DuckDB's vectors.
 *
 * A source is an array, and which of its elements are wanted: either n from a position on, or those of a list of
 * positions, in which -1 is a null. The list is what fields of null structs, dictionaries, views and unions need; the
 * wanted elements of a vector are always its first n. Everything is copied: DuckDB keeps vectors for longer than our
 * batches live. Nothing of an array is believed but what the reader made: lengths and offsets are stoa's own. */
#include "fill.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct source {
  const struct ArrowArray *a;
  const int64_t *at; /* NULL: from, from + 1, ... */
  int64_t from;
  int64_t n;
};

static inline int64_t position(const struct source *s, int64_t i) { return s->at ? s->at[i] : s->from + i; }

static inline bool bit(const uint8_t *bits, int64_t i) { return bits[i >> 3] >> (i & 7) & 1; }

/* present reports whether an element that is wanted is not null. */
static inline bool present(const struct source *s, const uint8_t *valid, int64_t at) {
  return at >= 0 && (!valid || bit(valid, at + s->a->offset));
}

/* bitmap is the bitmap of an array's nulls; NULL: there are none. */
static const uint8_t *bitmap(const struct ArrowArray *a) {
  return a->null_count != 0 && a->n_buffers > 0 ? a->buffers[0] : NULL;
}

static bool fail(struct duck_failure *f, int64_t row, const char *why) {
  f->row = row;
  snprintf(f->why, sizeof f->why, "%s", why);
  return false;
}

/* nulls marks the nulls of a vector. */
static void nulls(const struct source *s, const uint8_t *valid, duck_handle vector) {
  if (!valid && !s->at) return;
  uint64_t *to = NULL;
  for (int64_t i = 0; i < s->n; i++) {
    if (present(s, valid, position(s, i))) continue;
    if (!to) {
      duck.vector_ensure_validity_writable(vector);
      to = duck.vector_get_validity(vector);
    }
    to[i >> 6] &= ~(UINT64_C(1) << (i & 63));
  }
}

static int64_t integer(const void *p, int size, bool is_signed, int64_t i) {
  switch (size) {
  case 1: return is_signed ? ((const int8_t *)p)[i] : ((const uint8_t *)p)[i];
  case 2: return is_signed ? ((const int16_t *)p)[i] : ((const uint16_t *)p)[i];
  case 4: return is_signed ? (int64_t)((const int32_t *)p)[i] : (int64_t)((const uint32_t *)p)[i];
  case 16: return ((const int64_t *)p)[2 * i];
  default: return ((const int64_t *)p)[i];
  }
}

/* fits reports whether integer i, of size bytes, is one of out bytes. */
static bool fits(const void *p, int size, int out, int64_t i) {
  int64_t v = integer(p, size, true, i);
  if (size == 16 && ((const int64_t *)p)[2 * i + 1] != v >> 63) return false;
  return out >= 8 || (v >= -(INT64_C(1) << (8 * out - 1)) && v < INT64_C(1) << (8 * out - 1));
}

static void put(void *p, int size, int64_t i, int64_t v) {
  switch (size) {
  case 1: ((int8_t *)p)[i] = (int8_t)v; break;
  case 2: ((int16_t *)p)[i] = (int16_t)v; break;
  case 4: ((int32_t *)p)[i] = (int32_t)v; break;
  case 8: ((int64_t *)p)[i] = v; break;
  default:
    ((int64_t *)p)[2 * i] = v;
    ((int64_t *)p)[2 * i + 1] = v >> 63;
  }
}

static float half(uint16_t h) {
  uint32_t sign = (uint32_t)(h >> 15) << 31, exponent = h >> 10 & 31, fraction = h & 1023, bits;
  if (exponent == 31) {
    bits = sign | 0x7f800000 | fraction << 13;
  } else if (exponent) {
    bits = sign | (exponent + 112) << 23 | fraction << 13;
  } else { /* fraction * 2^-24, exactly */
    float f = (float)fraction * 0x1p-24f;
    memcpy(&bits, &f, 4);
    bits |= sign;
  }
  float f;
  memcpy(&f, &bits, 4);
  return f;
}

/* copied copies values of a fixed size that are the same on both sides. */
static void copied(const struct duck_node *node, const struct source *s, char *out) {
  const char *in = s->a->buffers[1];
  size_t size = (size_t)node->size;
  if (!in) return;
  in += s->a->offset * (int64_t)size;
  if (!s->at) {
    memcpy(out, in + s->from * (int64_t)size, (size_t)s->n * size);
    return;
  }
  for (int64_t i = 0; i < s->n; i++) {
    if (s->at[i] >= 0) memcpy(out + i * (int64_t)size, in + s->at[i] * (int64_t)size, size);
  }
}

/* scaled is an integer multiplied or divided. */
static bool scaled(const struct duck_node *node, int64_t v, int64_t *out, const char **why) {
  if (node->kind == DUCK_DIVIDE || node->factor < 0) {
    int64_t by = node->factor < 0 ? -node->factor : node->factor;
    *why = "it is finer than the type that DuckDB has for it";
    *out = v / by;
    return v % by == 0;
  }
  *why = "it is outside of the range of the type that DuckDB has for it";
  return !__builtin_mul_overflow(v, node->factor, out);
}

/* narrow makes 64-bit integers of 128-bit ones, as most decimals are; false: one does not fit, and numbers says which. */
static bool narrow(const struct source *s, int64_t *out) {
  const int64_t *in = (const int64_t *)s->a->buffers[1] + 2 * (s->a->offset + s->from);
  int64_t bad = 0;
  for (int64_t i = 0; i < s->n; i++) {
    out[i] = in[2 * i];
    bad |= in[2 * i + 1] ^ in[2 * i] >> 63;
  }
  return !bad;
}

/* uuid makes of the 16 bytes of a UUID the number that DuckDB has for it: the first byte is the highest, and its highest
 * bit is the other way round, so that signed numbers have the order of the bytes. */
static void uuid(const uint8_t *p, uint64_t *out) {
  uint64_t high = 0, low = 0;
  for (int k = 0; k < 8; k++) high = high << 8 | p[k], low = low << 8 | p[8 + k];
  out[0] = low, out[1] = high ^ UINT64_C(1) << 63;
}

static bool numbers(const struct duck_node *node, const struct source *s, const uint8_t *valid, void *out,
                    struct duck_failure *f) {
  const void *in = s->a->buffers[1];
  if (node->kind == DUCK_NARROW && node->size == 16 && node->out == 8 && !s->at && in && narrow(s, out)) return true;
  for (int64_t i = 0; i < s->n; i++) {
    int64_t at = position(s, i), v = 0;
    if (!present(s, valid, at)) continue;
    at += s->a->offset;
    const char *why = NULL;
    switch (node->kind) {
    case DUCK_BIT: ((uint8_t *)out)[i] = bit(in, at); break;
    case DUCK_UUID: uuid((const uint8_t *)in + 16 * at, (uint64_t *)out + 2 * i); break;
    case DUCK_HALF: ((float *)out)[i] = half(((const uint16_t *)in)[at]); break;
    case DUCK_NARROW:
      if (!fits(in, node->size, node->out, at)) return fail(f, i, "it has more digits than its type says");
      put(out, node->out, i, integer(in, node->size, true, at));
      break;
    case DUCK_WIDEN: put(out, node->out, i, integer(in, node->size, node->is_signed, at)); break;
    default:
      if (!scaled(node, integer(in, node->size, true, at), &v, &why)) return fail(f, i, why);
      put(out, node->out, i, v);
    }
  }
  return true;
}

struct interval {
  int32_t months, days;
  int64_t micros;
};

static bool intervals(const struct duck_node *node, const struct source *s, const uint8_t *valid, void *vector,
                      struct duck_failure *f) {
  const void *in = s->a->buffers[1];
  struct interval *out = vector;
  for (int64_t i = 0; i < s->n; i++) {
    int64_t at = position(s, i);
    if (!present(s, valid, at)) continue;
    at += s->a->offset;
    struct interval v = {0, 0, 0};
    const char *why = NULL;
    switch (node->kind) {
    case DUCK_SPAN:
      if (!scaled(node, ((const int64_t *)in)[at], &v.micros, &why)) return fail(f, i, why);
      break;
    case DUCK_MONTHS: v.months = ((const int32_t *)in)[at]; break;
    case DUCK_DAYS:
      v.days = ((const int32_t *)in)[2 * at];
      v.micros = (int64_t)((const int32_t *)in)[2 * at + 1] * 1000;
      break;
    default: {
      const char *p = (const char *)in + 16 * at;
      int64_t nanos;
      memcpy(&v.months, p, 4);
      memcpy(&v.days, p + 4, 4);
      memcpy(&nanos, p + 8, 8);
      if (nanos % 1000) return fail(f, i, "an interval of nanoseconds: DuckDB has microseconds");
      v.micros = nanos / 1000;
    }
    }
    out[i] = v;
  }
  return true;
}

/* is_utf8 reports whether a text is what DuckDB takes for one. */
static bool is_utf8(const uint8_t *p, size_t n) {
  while (n >= 8) {
    uint64_t w;
    memcpy(&w, p, 8);
    if (w & UINT64_C(0x8080808080808080)) break;
    p += 8, n -= 8;
  }
  while (n) {
    uint8_t c = *p;
    size_t more = c < 0x80 ? 0 : c >= 0xc2 && c <= 0xdf ? 1 : (c & 0xf0) == 0xe0 ? 2 : c >= 0xf0 && c <= 0xf4 ? 3 : 9;
    if (more >= n) return false;
    for (size_t k = 1; k <= more; k++) {
      if ((p[k] & 0xc0) != 0x80) return false;
    }
    if ((c == 0xe0 && p[1] < 0xa0) || (c == 0xed && p[1] > 0x9f) || (c == 0xf0 && p[1] < 0x90) ||
        (c == 0xf4 && p[1] > 0x8f)) {
      return false;
    }
    p += more + 1, n -= more + 1;
  }
  return true;
}

/* A text as DuckDB's vectors have it: short ones are within. */
struct text {
  uint32_t length;
  char within[12];
};

static bool bytes_of(const struct duck_node *node, const struct ArrowArray *a, int64_t at, const char **p, int64_t *n) {
  const char *data = a->n_buffers > 2 ? a->buffers[2] : NULL;
  switch (node->kind) {
  case DUCK_TEXT:
  case DUCK_BYTES: {
    const int32_t *o = (const int32_t *)a->buffers[1] + at;
    *p = data + o[0], *n = o[1] - o[0];
    return false;
  }
  case DUCK_LARGE_TEXT:
  case DUCK_LARGE_BYTES: {
    const int64_t *o = (const int64_t *)a->buffers[1] + at;
    *p = data + o[0], *n = o[1] - o[0];
    return false;
  }
  case DUCK_FIXED_BYTES:
    *p = (const char *)a->buffers[1] + at * node->size, *n = node->size;
    return false;
  default: {
    const char *view = (const char *)a->buffers[1] + 16 * at;
    int32_t length, buffer, offset;
    memcpy(&length, view, 4);
    *n = length;
    if (length <= 12) {
      *p = view + 4;
      return false;
    }
    memcpy(&buffer, view + 8, 4);
    memcpy(&offset, view + 12, 4);
    *p = (const char *)a->buffers[2 + buffer] + offset;
    return false;
  }
  }
}

/* short_texts copies texts that are side by side, up to the first that is long, or no plain ASCII, or too near to the end
 * of their buffer for a load of 12 bytes; it gives how many there are. Nulls are copied like others. */
static int64_t short_texts(const struct source *s, struct text *out) {
  const int32_t *o = (const int32_t *)s->a->buffers[1] + s->a->offset + s->from;
  const char *data = s->a->buffers[2];
  const int32_t end = ((const int32_t *)s->a->buffers[1])[s->a->offset + s->a->length];
  int64_t i = 0;
  for (; i < s->n; i++) {
    int64_t n = o[i + 1] - o[i];
    if (n > 12 || o[i] + 12 > end) break;
    uint64_t a;
    uint32_t b;
    memcpy(&a, data + o[i], 8);
    memcpy(&b, data + o[i] + 8, 4);
    if (n < 8) a = n ? a & (~UINT64_C(0) >> (64 - 8 * n)) : 0;
    b = n > 8 ? b & (~UINT32_C(0) >> (96 - 8 * n)) : 0;
    if (a & UINT64_C(0x8080808080808080) || b & 0x80808080) break;
    out[i].length = (uint32_t)n;
    memcpy(out[i].within, &a, 8);
    memcpy(out[i].within + 8, &b, 4);
  }
  return i;
}

static bool is_ascii(const char *p, size_t n) {
  uint64_t all = 0, w = 0;
  for (; n >= 8; p += 8, n -= 8) {
    memcpy(&w, p, 8);
    all |= w;
  }
  w = 0;
  memcpy(&w, p, n);
  return !((all | w) & UINT64_C(0x8080808080808080));
}

/* A long text as DuckDB's vectors have it: its first bytes, and where it is. */
struct long_text {
  uint32_t length;
  char first[4];
  const char *all;
};

/* block_texts copies texts that are side by side, from element i to the last, at once: all of their bytes become one
 * text of the vector's, and each of them a part of it. It reports whether it has done that: not if one is no UTF-8, or
 * if it is not certain that what lies under nulls is. */
static bool block_texts(const struct duck_node *node, const struct source *s, const uint8_t *valid, int64_t i,
                        duck_handle vector, struct text *out) {
  const int32_t *o = (const int32_t *)s->a->buffers[1] + s->a->offset + s->from;
  const char *data = s->a->buffers[2];
  const int64_t all = o[s->n] - o[i];
  if (all < 16 * (s->n - i)) return false; /* most are short */
  if (node->kind == DUCK_TEXT && !is_ascii(data + o[i], (size_t)all)) {
    if (valid) return false;
    for (int64_t k = i; k < s->n; k++) {
      if (!is_utf8((const uint8_t *)data + o[k], (size_t)(o[k + 1] - o[k]))) return false;
    }
  }
  duck.vector_assign_string_element_len(vector, (duck_idx)i, data + o[i], (duck_idx)all);
  struct long_text block;
  memcpy(&block, out + i, sizeof block);
  for (int64_t from = o[i]; i < s->n; i++) {
    int64_t n = o[i + 1] - o[i];
    if (n > 12) {
      struct long_text t = {(uint32_t)n, {0}, block.all + (o[i] - from)};
      memcpy(t.first, t.all, sizeof t.first);
      memcpy(out + i, &t, sizeof t);
      continue;
    }
    struct text t = {(uint32_t)n, {0}};
    if (n) memcpy(t.within, block.all + (o[i] - from), (size_t)n);
    out[i] = t;
  }
  return true;
}

static bool texts(const struct duck_node *node, const struct source *s, const uint8_t *valid, duck_handle vector,
                  struct duck_failure *f) {
  struct text *out = duck.vector_get_data(vector);
  bool text = node->kind == DUCK_TEXT || node->kind == DUCK_LARGE_TEXT || node->kind == DUCK_VIEW_TEXT;
  int64_t i = 0;
  if ((node->kind == DUCK_TEXT || node->kind == DUCK_BYTES) && !s->at && s->a->buffers[2]) {
    if (node->kind == DUCK_TEXT) i = short_texts(s, out);
    if (i == s->n || block_texts(node, s, valid, i, vector, out)) return true;
  }
  for (; i < s->n; i++) {
    int64_t at = position(s, i), n = 0;
    const char *p = NULL;
    if (!present(s, valid, at)) continue;
    bytes_of(node, s->a, at + s->a->offset, &p, &n);
    if (n > UINT32_MAX) return fail(f, i, "it has 4 GiB or more: DuckDB has no such value");
    if (text && !is_utf8((const uint8_t *)p, (size_t)n)) {
      return fail(f, i, "the text is not UTF-8: DuckDB has no such text");
    }
    if (n > 12) {
      duck.vector_assign_string_element_len(vector, (duck_idx)i, p, (duck_idx)n);
      continue;
    }
    struct text t = {(uint32_t)n, {0}};
    if (n) memcpy(t.within, p, (size_t)n);
    out[i] = t;
  }
  return true;
}

/* Positions in the children of lists, dictionaries and the like. */
struct positions {
  int64_t *at;
  int64_t n, room;
};

static bool push(struct positions *p, int64_t at, struct duck_failure *f) {
  if (p->n == p->room) {
    int64_t room = p->room ? 2 * p->room : 1024;
    int64_t *more = realloc(p->at, (size_t)room * sizeof *more);
    if (!more) return fail(f, 0, "out of memory");
    p->at = more, p->room = room;
  }
  p->at[p->n++] = at;
  return true;
}

static bool fill(const struct duck_node *node, const struct source *s, duck_handle vector, struct duck_failure *f);

/* chosen fills a vector with elements of a child. */
static bool chosen(const struct duck_node *node, const struct ArrowArray *a, const struct positions *p,
                   duck_handle vector, struct duck_failure *f) {
  struct source s = {a, p->at, 0, p->n};
  int64_t none = -1;
  if (!p->at) s.at = &none;
  return fill(node, &s, vector, f);
}

struct entry {
  uint64_t offset, length;
};

/* list_at is where the elements of a list lie in the child, from its offset on. */
static void list_at(const struct duck_node *node, const struct ArrowArray *a, int64_t at, int64_t *from, int64_t *n) {
  switch (node->kind) {
  case DUCK_LARGE_LIST: {
    const int64_t *o = (const int64_t *)a->buffers[1] + at;
    *from = o[0], *n = o[1] - o[0];
    return;
  }
  case DUCK_LIST_VIEW:
    *from = ((const int32_t *)a->buffers[1])[at], *n = ((const int32_t *)a->buffers[2])[at];
    return;
  case DUCK_LARGE_LIST_VIEW:
    *from = ((const int64_t *)a->buffers[1])[at], *n = ((const int64_t *)a->buffers[2])[at];
    return;
  default: {
    const int32_t *o = (const int32_t *)a->buffers[1] + at;
    *from = o[0], *n = o[1] - o[0];
  }
  }
}

static bool lists(const struct duck_node *node, const struct source *s, const uint8_t *valid, duck_handle vector,
                  struct duck_failure *f) {
  struct positions p = {0};
  struct entry *out = duck.vector_get_data(vector);
  bool ok = true;
  for (int64_t i = 0; ok && i < s->n; i++) {
    int64_t at = position(s, i), from = 0, n = 0;
    if (present(s, valid, at)) list_at(node, s->a, at + s->a->offset, &from, &n);
    out[i] = (struct entry){(uint64_t)p.n, (uint64_t)n};
    for (int64_t k = 0; ok && k < n; k++) ok = push(&p, from + k, f);
  }
  if (ok && (duck.list_vector_reserve(vector, (duck_idx)p.n) || duck.list_vector_set_size(vector, (duck_idx)p.n))) {
    ok = fail(f, 0, "DuckDB has no memory for its elements");
  }
  if (ok && p.n) {
    ok = chosen(node->children[0], s->a->children[0], &p, duck.list_vector_get_child(vector), f);
  }
  free(p.at);
  return ok;
}

static bool arrays(const struct duck_node *node, const struct source *s, const uint8_t *valid, duck_handle vector,
                   struct duck_failure *f) {
  struct positions p = {0};
  bool ok = true;
  for (int64_t i = 0; ok && i < s->n; i++) {
    int64_t at = position(s, i);
    bool there = present(s, valid, at);
    for (int64_t k = 0; ok && k < node->size; k++) {
      ok = push(&p, there ? (at + s->a->offset) * node->size + k : -1, f);
    }
  }
  ok = ok && chosen(node->children[0], s->a->children[0], &p, duck.array_vector_get_child(vector), f);
  free(p.at);
  return ok;
}

/* inside gives the positions of the elements that are not null, for the fields of a struct. */
static bool inside(const struct source *s, const uint8_t *valid, struct positions *p, struct duck_failure *f) {
  for (int64_t i = 0; i < s->n; i++) {
    int64_t at = position(s, i);
    if (!push(p, present(s, valid, at) ? at + s->a->offset : -1, f)) return false;
  }
  return true;
}

static bool structs(const struct duck_node *node, const struct source *s, const uint8_t *valid, duck_handle vector,
                    struct duck_failure *f) {
  struct positions p = {0};
  bool ok = inside(s, valid, &p, f);
  for (int k = 0; ok && k < node->n; k++) {
    ok = chosen(node->children[k], s->a->children[k], &p, duck.struct_vector_get_child(vector, (duck_idx)k), f);
  }
  free(p.at);
  return ok;
}

/* unions: a vector of a union is one of a struct whose first field is the number of the member. */
static bool unions(const struct duck_node *node, const struct source *s, duck_handle vector, struct duck_failure *f) {
  const int8_t *codes = s->a->buffers[0];
  const int32_t *offsets = node->kind == DUCK_DENSE ? s->a->buffers[1] : NULL;
  uint8_t *tags = duck.vector_get_data(duck.struct_vector_get_child(vector, 0));
  bool ok = true;
  for (int k = 0; ok && k < node->n; k++) {
    struct positions p = {0};
    for (int64_t i = 0; ok && i < s->n; i++) {
      int64_t at = position(s, i);
      if (at >= 0) at += s->a->offset;
      int member = at >= 0 && codes[at] >= 0 ? node->codes[codes[at]] : 0;
      tags[i] = (uint8_t)member;
      ok = push(&p, at < 0 || member != k ? -1 : offsets ? offsets[at] : at, f);
    }
    ok = ok && chosen(node->children[k], s->a->children[k], &p, duck.struct_vector_get_child(vector, (duck_idx)k + 1), f);
    free(p.at);
  }
  return ok;
}

static bool dictionaries(const struct duck_node *node, const struct source *s, const uint8_t *valid,
                         duck_handle vector, struct duck_failure *f) {
  struct positions p = {0};
  bool ok = true;
  for (int64_t i = 0; ok && i < s->n; i++) {
    int64_t at = position(s, i);
    ok = push(&p, present(s, valid, at)
                      ? integer(s->a->buffers[1], node->size, node->is_signed, at + s->a->offset) : -1, f);
  }
  ok = ok && chosen(node->children[0], s->a->dictionary, &p, vector, f);
  free(p.at);
  return ok;
}

static bool runs(const struct duck_node *node, const struct source *s, duck_handle vector, struct duck_failure *f) {
  const struct ArrowArray *ends = s->a->children[0];
  struct positions p = {0};
  bool ok = true;
  int64_t run = 0;
  for (int64_t i = 0; ok && i < s->n; i++) {
    int64_t at = position(s, i), k = -1;
    if (at >= 0) {
      at += s->a->offset;
      if (run >= ends->length || (run && integer(ends->buffers[1], node->size, true, ends->offset + run - 1) > at)) run = 0;
      while (run < ends->length && integer(ends->buffers[1], node->size, true, ends->offset + run) <= at) run++;
      k = run;
    }
    ok = push(&p, k, f);
  }
  ok = ok && chosen(node->children[0], s->a->children[1], &p, vector, f);
  free(p.at);
  return ok;
}

void duck_fill_nulls(int64_t n, duck_handle vector) {
  duck.vector_ensure_validity_writable(vector);
  uint64_t *to = duck.vector_get_validity(vector);
  for (int64_t i = 0; i < n; i++) to[i >> 6] &= ~(UINT64_C(1) << (i & 63));
}

static bool fill(const struct duck_node *node, const struct source *s, duck_handle vector, struct duck_failure *f) {
  const uint8_t *valid = NULL;
  switch (node->kind) { /* those that have no bitmap, or whose nulls are those of what they stand for */
  case DUCK_NULL:
    duck_fill_nulls(s->n, vector);
    return true;
  case DUCK_DENSE:
  case DUCK_SPARSE:
    nulls(s, NULL, vector);
    return unions(node, s, vector, f);
  case DUCK_DICTIONARY: return dictionaries(node, s, bitmap(s->a), vector, f);
  case DUCK_RUNS: return runs(node, s, vector, f);
  default:
    valid = bitmap(s->a);
    nulls(s, valid, vector);
  }
  switch (node->kind) {
  case DUCK_COPY:
    copied(node, s, duck.vector_get_data(vector));
    return true;
  case DUCK_NOTHING:
    memset(duck.vector_get_data(vector), 0, (size_t)s->n);
    return true;
  case DUCK_BIT:
  case DUCK_WIDEN:
  case DUCK_NARROW:
  case DUCK_HALF:
  case DUCK_UUID:
  case DUCK_MULTIPLY:
  case DUCK_DIVIDE: return numbers(node, s, valid, duck.vector_get_data(vector), f);
  case DUCK_SPAN:
  case DUCK_MONTHS:
  case DUCK_DAYS:
  case DUCK_MONTH_NANO: return intervals(node, s, valid, duck.vector_get_data(vector), f);
  case DUCK_LIST:
  case DUCK_LARGE_LIST:
  case DUCK_LIST_VIEW:
  case DUCK_LARGE_LIST_VIEW:
  case DUCK_MAP: return lists(node, s, valid, vector, f);
  case DUCK_ARRAY: return arrays(node, s, valid, vector, f);
  case DUCK_STRUCT: return structs(node, s, valid, vector, f);
  default: return texts(node, s, valid, vector, f);
  }
}

bool duck_fill(const struct duck_node *node, const struct ArrowArray *a, int64_t from, int64_t n, duck_handle vector,
               struct duck_failure *f) {
  struct source s = {a, NULL, from, n};
  return fill(node, &s, vector, f);
}
