/* entry.h: what DuckDB hands to an extension. */
#ifndef STOA_ENTRY_H
#define STOA_ENTRY_H

#include <stdbool.h>

struct duckdb_extension_access {
  void (*set_error)(void *info, const char *error);
  void **(*get_database)(void *info);
  const void *(*get_api)(void *info, const char *version);
};

bool stoa_init_c_api(void *info, struct duckdb_extension_access *access);

#endif
