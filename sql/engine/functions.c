#include "duckdb.h"

struct duck_api *engine_functions(void) {
  static struct duck_api api;
#define DUCK_LINKED(slot, result, name, arguments) api.name = duckdb_##name;
  DUCK_FUNCTIONS(DUCK_LINKED)
#undef DUCK_LINKED
  return &api;
}
