/* entry.c: the function that DuckDB calls when it loads the extension. */
#include "entry.h"

#include <stdlib.h>

#include "_cgo_export.h"

/* The places of two functions in the table of the interface: see ../sql/duck/abi.h. */
enum { CONNECT = 3, DISCONNECT = 6 };

__attribute__((visibility("default"))) bool stoa_init_c_api(void *info, struct duckdb_extension_access *access) {
  void *const *api = access->get_api(info, "v1.2.0");
  if (!api) return false; /* DuckDB has said why */
  void **database = access->get_database(info);
  if (!database) return false;
  void *connection = NULL;
  if (((int (*)(void *, void **))api[CONNECT])(*database, &connection)) {
    access->set_error(info, "stoa: no connection");
    return false;
  }
  char *error = goLoad((void *)api, *database, connection);
  ((void (*)(void **))api[DISCONNECT])(&connection);
  if (!error) return true;
  access->set_error(info, error);
  free(error);
  return false;
}
