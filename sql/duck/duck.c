/* duck.c: the callbacks of DuckDB's table functions. What they decide is in Go; what each chunk costs is here. */
#include "fill.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "_cgo_export.h"

struct duck_api duck;

void duck_from_slots(const void *const *slots) {
#define DUCK_SLOT(slot, result, name, arguments) memcpy(&duck.name, slots + slot, sizeof(void *));
  DUCK_FUNCTIONS(DUCK_SLOT)
#undef DUCK_SLOT
}

struct duck_node *duck_new_node(int kind, int n) {
  struct duck_node *node = calloc(1, sizeof *node);
  node->kind = kind;
  node->n = n;
  node->children = calloc((size_t)n + 1, sizeof *node->children);
  return node;
}

void duck_free_node(struct duck_node *node) {
  if (!node) return;
  for (int i = 0; i < node->n; i++) duck_free_node(node->children[i]);
  free(node->children);
  free(node);
}

struct duck_scan *duck_new_scan(uintptr_t go, int columns) {
  struct duck_scan *scan = calloc(1, sizeof *scan);
  scan->go = go;
  scan->columns = columns;
  scan->nodes = calloc((size_t)columns + 1, sizeof *scan->nodes);
  scan->fields = calloc((size_t)columns + 1, sizeof *scan->fields);
  return scan;
}

void duck_set_column(struct duck_scan *scan, int i, struct duck_node *node, int field) {
  scan->nodes[i] = node;
  scan->fields[i] = field;
}

static void free_scan(void *data) {
  struct duck_scan *scan = data;
  goCloseScan(scan->go);
  free(scan->nodes);
  free(scan->fields);
  free(scan);
}

static void free_bound(void *data) { goCloseBound((uintptr_t)data); }

static void bind(duck_handle info) { goBind(info, (uintptr_t)duck.bind_get_extra_info(info)); }

static void init(duck_handle info) { goInit(info, (uintptr_t)duck.init_get_bind_data(info)); }

void duck_set_bind(duck_handle info, uintptr_t bound) { duck.bind_set_bind_data(info, (void *)bound, free_bound); }

void duck_set_init(duck_handle info, struct duck_scan *scan) { duck.init_set_init_data(info, scan, free_scan); }

/* What a thread has of a scan: the batch that it is at, and how far it has come in it. */
struct local {
  struct ArrowArray batch;
  uintptr_t pins; /* what keeps its buffers where they are; 0: nothing has to */
  int64_t next;
};

static void drop(struct local *l) {
  if (l->batch.release) l->batch.release(&l->batch);
  l->batch.release = NULL;
  if (l->pins) goUnpin(l->pins);
  l->pins = 0;
}

static void free_local(void *data) {
  drop(data);
  free(data);
}

static void init_local(duck_handle info) { duck.init_set_init_data(info, calloc(1, sizeof(struct local)), free_local); }

/* bad reports a value that DuckDB cannot have. */
static void bad(duck_handle info, struct duck_scan *scan, int column, int64_t row, const char *why) {
  char *message = goBadValue(scan->go, column, row, (char *)why);
  duck.function_set_error(info, message);
  free(message);
}

static void next_chunk(duck_handle info, duck_handle chunk) {
  struct duck_scan *scan = duck.function_get_init_data(info);
  struct local *l = duck.function_get_local_init_data(info);
  while (!l->batch.release || l->next >= l->batch.length) {
    drop(l);
    char *message = NULL;
    int more = goNext(scan->go, &l->batch, &l->pins, &message);
    l->next = 0;
    if (message) {
      duck.function_set_error(info, message);
      free(message);
      return;
    }
    if (!more) {
      duck.data_chunk_set_size(chunk, 0);
      return;
    }
  }
  int64_t n = l->batch.length - l->next, most = (int64_t)duck.vector_size();
  if (n > most) n = most;
  for (int i = 0; i < scan->columns; i++) {
    struct duck_failure f;
    if (!scan->nodes[i]) { /* nobody looks at it */
      duck_fill_nulls(n, duck.data_chunk_get_vector(chunk, (duck_idx)i));
      continue;
    }
    if (!duck_fill(scan->nodes[i], l->batch.children[scan->fields[i]], l->next + l->batch.offset, n,
                   duck.data_chunk_get_vector(chunk, (duck_idx)i), &f)) {
      bad(info, scan, i, f.row, f.why);
      return;
    }
  }
  l->next += n;
  duck.data_chunk_set_size(chunk, (duck_idx)n);
}

static void free_function(void *data) { goCloseFunction((uintptr_t)data); }

int duck_register(duck_handle connection, const char *name, uintptr_t function, int parameters, const char **named,
                  int n_named, bool projects) {
  duck_handle text = duck.create_logical_type(17 /* VARCHAR */);
  duck_handle f = duck.create_table_function();
  duck.table_function_set_name(f, name);
  for (int i = 0; i < parameters; i++) duck.table_function_add_parameter(f, text);
  for (int i = 0; i < n_named; i++) duck.table_function_add_named_parameter(f, named[i], text);
  duck.table_function_set_extra_info(f, (void *)function, free_function);
  duck.table_function_set_bind(f, bind);
  duck.table_function_set_init(f, init);
  duck.table_function_set_local_init(f, init_local);
  duck.table_function_set_function(f, next_chunk);
  duck.table_function_supports_projection_pushdown(f, projects);
  int state = duck.register_table_function(connection, f);
  duck.destroy_table_function(&f);
  duck.destroy_logical_type(&text);
  return state;
}

static void free_replacer(void *data) { goCloseFunction((uintptr_t)data); }

static void replace(duck_handle info, const char *name, void *data) {
  char *message = NULL, *argument = NULL;
  char *function = goReplace((uintptr_t)data, (char *)name, &argument, &message);
  if (message) {
    duck.replacement_scan_set_error(info, message);
    free(message);
  }
  if (!function) return;
  duck.replacement_scan_set_function_name(info, function);
  duck_handle address = duck.create_varchar(argument);
  duck.replacement_scan_add_parameter(info, address);
  duck.destroy_value(&address);
  free(function);
  free(argument);
}

void duck_replace(duck_handle database, uintptr_t replacer) {
  duck.add_replacement_scan(database, replace, (void *)replacer, free_replacer);
}
