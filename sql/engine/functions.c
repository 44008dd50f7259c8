#include "duckdb.h"

struct duck_api *engine_functions(void) {
  static struct duck_api api;
#define DUCK_LINKED(slot, result, name, arguments) api.name = duckdb_##name;
  DUCK_FUNCTIONS(DUCK_LINKED)
#undef DUCK_LINKED
  /* The texts have been checked. An extension cannot know whether there is this function. */
  api.vector_assign_string_element_len = duckdb_unsafe_vector_assign_string_element_len;
  return &api;
}
