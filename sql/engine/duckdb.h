/* duckdb.h: what the engine calls of DuckDB besides what the shim does. */
#ifndef STOA_ENGINE_DUCKDB_H
#define STOA_ENGINE_DUCKDB_H

#include "../duck/abi.h"

struct ArrowSchema;
struct ArrowArray;

struct duck_result {
  duck_idx old[3];
  void *columns;
  char *message;
  void *inner;
};

int duckdb_create_config(duck_handle *);
int duckdb_set_config(duck_handle, const char *name, const char *value);
void duckdb_destroy_config(duck_handle *);
int duckdb_open_ext(const char *path, duck_handle *database, duck_handle config, char **error);
void duckdb_close(duck_handle *);
void duckdb_interrupt(duck_handle connection);
duck_idx duckdb_extract_statements(duck_handle connection, const char *text, duck_handle *out);
const char *duckdb_extract_statements_error(duck_handle);
void duckdb_destroy_extracted(duck_handle *);
int duckdb_prepare_extracted_statement(duck_handle connection, duck_handle, duck_idx i, duck_handle *out);
const char *duckdb_prepare_error(duck_handle);
void duckdb_destroy_prepare(duck_handle *);
duck_idx duckdb_prepared_statement_column_count(duck_handle);
const char *duckdb_prepared_statement_column_name(duck_handle, duck_idx); // to be freed
duck_handle duckdb_prepared_statement_column_logical_type(duck_handle, duck_idx);
int duckdb_pending_prepared_streaming(duck_handle, duck_handle *out);
const char *duckdb_pending_error(duck_handle);
int duckdb_execute_pending(duck_handle, struct duck_result *out);
void duckdb_destroy_pending(duck_handle *);
const char *duckdb_result_error(struct duck_result *);
int duckdb_result_return_type(struct duck_result);
duck_idx duckdb_column_count(struct duck_result *);
const char *duckdb_column_name(struct duck_result *, duck_idx);
duck_handle duckdb_column_logical_type(struct duck_result *, duck_idx);
int duckdb_get_type_id(duck_handle type);
duck_handle duckdb_list_type_child_type(duck_handle type);
duck_handle duckdb_array_type_child_type(duck_handle type);
duck_handle duckdb_map_type_key_type(duck_handle type);
duck_handle duckdb_map_type_value_type(duck_handle type);
duck_idx duckdb_struct_type_child_count(duck_handle type);
duck_handle duckdb_struct_type_child_type(duck_handle type, duck_idx);
duck_idx duckdb_union_type_member_count(duck_handle type);
duck_handle duckdb_union_type_member_type(duck_handle type, duck_idx);
duck_idx duckdb_rows_changed(struct duck_result *);
duck_handle duckdb_fetch_chunk(struct duck_result);
void duckdb_destroy_data_chunk(duck_handle *);
void duckdb_destroy_result(struct duck_result *);
duck_handle duckdb_result_get_arrow_options(struct duck_result *);
void duckdb_destroy_arrow_options(duck_handle *);
duck_handle duckdb_to_arrow_schema(duck_handle options, duck_handle *types, const char **names, duck_idx n,
                                   struct ArrowSchema *out);
duck_handle duckdb_data_chunk_to_arrow(duck_handle options, duck_handle chunk, struct ArrowArray *out);
void duckdb_unsafe_vector_assign_string_element_len(duck_handle vector, duck_idx row, const char *, duck_idx);
bool duckdb_error_data_has_error(duck_handle);
const char *duckdb_error_data_message(duck_handle);
void duckdb_destroy_error_data(duck_handle *);

#define DUCK_DECLARE(slot, result, name, arguments) result duckdb_##name arguments;
DUCK_FUNCTIONS(DUCK_DECLARE)
#undef DUCK_DECLARE

/* The functions that the shim calls. */
struct duck_api *engine_functions(void);

#endif
