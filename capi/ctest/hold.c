// Batches that a host holds while the library goes on: of several tables and scans, while other threads scan and give
// memory back, every value of them is compared with what it was.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static uint64_t mix(uint64_t h, const void *b, size_t n) {
  for (size_t i = 0; i < n; i++) h = (h ^ ((const unsigned char *)b)[i]) * 0x100000001b3ull;
  return h;
}

// width is the size of a value, for types whose values lie one after another; 0 for others.
static size_t width(const char *f) {
  if (strchr("cC", f[0])) return 1;
  if (strchr("sSe", f[0])) return 2;
  if (strchr("iIf", f[0]) || !strcmp(f, "tdD") || !strcmp(f, "tts") || !strcmp(f, "ttm")) return 4;
  if (strchr("lLg", f[0]) || f[0] == 't') return 8;
  if (f[0] == 'd') return 16; // decimals of 128 bits: the tables here have no others
  return f[0] == 'w' ? (size_t)atoi(f + 2) : 0;
}

static int64_t offset_at(const struct ArrowArray *a, int large, int64_t i) {
  return large ? ((const int64_t *)a->buffers[1])[i] : ((const int32_t *)a->buffers[1])[i];
}

// value adds what lies at position i of an array to a sum.
static uint64_t value(const struct ArrowSchema *t, const struct ArrowArray *a, int64_t i, uint64_t h) {
  const char *f = t->format;
  int64_t at = a->offset + i;
  if (strcmp(f, "n") == 0) return mix(h, "n", 1);
  const unsigned char *valid = a->n_buffers ? a->buffers[0] : NULL;
  if (valid && !(valid[at / 8] >> at % 8 & 1)) return mix(h, "null", 4);
  if (t->dictionary) {
    size_t w = width(f);
    CHECK(w == 1 || w == 2 || w == 4 || w == 8);
    int64_t code = 0; // of a little-endian machine
    memcpy(&code, (const char *)a->buffers[1] + at * w, w);
    CHECK(code >= 0 && code < a->dictionary->length);
    return value(t->dictionary, a->dictionary, code, h);
  }
  if (f[0] == 'b') {
    char bit = ((const unsigned char *)a->buffers[1])[at / 8] >> at % 8 & 1;
    return mix(h, &bit, 1);
  }
  if (strchr("uUzZ", f[0])) {
    int large = f[0] == 'U' || f[0] == 'Z';
    int64_t from = offset_at(a, large, at), to = offset_at(a, large, at + 1);
    CHECK(from >= 0 && to >= from);
    return mix(mix(h, &(int64_t){to - from}, 8), (const char *)a->buffers[2] + from, to - from);
  }
  if (strcmp(f, "+s") == 0) {
    for (int64_t c = 0; c < a->n_children; c++) h = value(t->children[c], a->children[c], at, h);
    return h;
  }
  if (f[0] == '+') {
    CHECK(f[1] == 'l' || f[1] == 'L' || f[1] == 'm');
    int64_t from = offset_at(a, f[1] == 'L', at), to = offset_at(a, f[1] == 'L', at + 1);
    CHECK(from >= 0 && to >= from && to <= a->children[0]->length);
    h = mix(h, &(int64_t){to - from}, 8);
    for (; from < to; from++) h = value(t->children[0], a->children[0], from, h);
    return h;
  }
  size_t w = width(f);
  CHECK(w > 0);
  return mix(h, (const char *)a->buffers[1] + at * w, w);
}

static uint64_t values(const struct ArrowSchema *t, const struct ArrowArray *a) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (int64_t i = 0; i < a->length; i++) h = value(t, a, i, h);
  return h;
}

struct held {
  struct ArrowArray array;
  uint64_t sum;
};

struct holding {
  struct ArrowSchema schema;
  struct held *all;
  int n, room;
};

// hold reads a table to its end, and keeps all batches, and what their values add up to.
static void hold(struct holding *k, const char *name, int batch) {
  char spec[100], *error = NULL;
  struct ArrowArrayStream s;
  stoa_t t = open_table(name);
  snprintf(spec, sizeof spec, "{\"batch\":%d}", batch);
  CHECK(stoa_scan(t, spec, &s, NULL, &error) == STOA_OK);
  stoa_release(t);
  CHECK(s.get_schema(&s, &k->schema) == 0);
  for (;;) {
    if (k->n == k->room) CHECK((k->all = realloc(k->all, (k->room = 2 * k->room + 8) * sizeof *k->all)));
    struct held *x = &k->all[k->n];
    CHECK(s.get_next(&s, &x->array) == 0);
    if (!x->array.release) break;
    x->sum = values(&k->schema, &x->array);
    k->n++;
  }
  s.release(&s);
}

static const char *const names[] = {"kinds.arrow", "kudu#d_major", "flat.red",           "key.cfile",
                                    "dremel.trv",  "primitives.trv", "carbon/managed_del"};
enum { NAMES = sizeof names / sizeof *names };

static void read_table(const char *name) {
  int rc;
  stoa_t t = open_table(name);
  CHECK(read_all(t, "{\"batch\":100}", NULL, &rc, NULL, 0) > 0 && rc == 0);
  stoa_release(t);
}

static atomic_int over;

// others scans everything, over and over, so that memory that is given back is taken and written again.
static void *others(void *unused) {
  (void)unused;
  while (!atomic_load(&over)) {
    for (int i = 0; i < NAMES; i++) {
      read_table(names[i]);
    }
    stoa_trim();
  }
  return NULL;
}

// A column of a batch may be taken out of it (Arrow's interface says how): it lives on when the rest is released.
static void take_columns(struct holding *k) {
  for (int i = 0; i < k->n; i++) {
    struct ArrowArray *a = &k->all[i].array;
    if (a->n_children == 0) continue;
    struct ArrowArray moved = *a->children[a->n_children - 1];
    const struct ArrowSchema *t = k->schema.children[a->n_children - 1];
    uint64_t sum = values(t, &moved);
    a->children[a->n_children - 1]->release = NULL;
    a->release(a);
    CHECK(a->release == NULL);
    stoa_trim();
    read_table(names[i % NAMES]);
    CHECK(values(t, &moved) == sum);
    moved.release(&moved);
  }
}

void holds(void) {
  struct holding all[NAMES] = {0};
  pthread_t side[2];
  int64_t batches = 0;
  for (int i = 0; i < 2; i++) CHECK(pthread_create(&side[i], NULL, others, NULL) == 0);
  for (int round = 0; round < 3; round++)
    for (int i = 0; i < NAMES; i++) {
      if (round) all[i].schema.release(&all[i].schema);
      hold(&all[i], names[i], 7 + 13 * round);
    }
  atomic_store(&over, 1);
  for (int i = 0; i < 2; i++) pthread_join(side[i], NULL);
  for (int odd = 0; odd < 2; odd++) // every second one is released first
    for (int i = 0; i < NAMES; i++)
      for (int j = odd; j < all[i].n - all[i].n / 4; j += 2) {
        CHECK(values(&all[i].schema, &all[i].all[j].array) == all[i].all[j].sum);
        all[i].all[j].array.release(&all[i].all[j].array);
        batches++;
      }
  for (int i = 0; i < NAMES; i++) {
    struct holding rest = {all[i].schema, all[i].all + (all[i].n - all[i].n / 4), all[i].n / 4, 0};
    for (int j = 0; j < rest.n; j++) CHECK(values(&rest.schema, &rest.all[j].array) == rest.all[j].sum);
    take_columns(&rest);
    batches += rest.n;
    all[i].schema.release(&all[i].schema);
    free(all[i].all);
  }
  printf("batches that are held: right (%lld)\n", (long long)batches);
}
