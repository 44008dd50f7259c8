/* abi.h: what the shim calls of DuckDB's C interface.
 *
 * All of it is in the stable part of the interface, which an extension finds as a table of pointers, at the slots named
 * here, and a program that links DuckDB as functions. Both fill struct duck_api, and nothing else here knows which it
 * is. Handles of DuckDB are pointers to what only DuckDB knows; states are 0 for success. */
#ifndef STOA_DUCK_ABI_H
#define STOA_DUCK_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void *duck_handle;
typedef uint64_t duck_idx;
typedef void (*duck_callback)(duck_handle info);
typedef void (*duck_scan_callback)(duck_handle info, duck_handle chunk);
typedef void (*duck_delete_callback)(void *data);
typedef void (*duck_replacement_callback)(duck_handle info, const char *name, void *data);

/* The slots are those of version v1.2.0 of the interface; they do not change in later ones. */
#define DUCK_FUNCTIONS(X)                                                                                            \
  X(3, int, connect, (duck_handle database, duck_handle *connection))                                                \
  X(6, void, disconnect, (duck_handle *connection))                                                                  \
  X(7, const char *, library_version, (void))                                                                        \
  X(25, void, free, (void *))                                                                                        \
  X(26, duck_idx, vector_size, (void))                                                                               \
  X(92, void, destroy_value, (duck_handle *))                                                                        \
  X(93, duck_handle, create_varchar, (const char *))                                                                 \
  X(142, char *, get_varchar, (duck_handle value))                                                                   \
  X(149, bool, is_null_value, (duck_handle value))                                                                   \
  X(156, duck_handle, create_logical_type, (int type))                                                               \
  X(159, duck_handle, create_list_type, (duck_handle type))                                                          \
  X(160, duck_handle, create_array_type, (duck_handle type, duck_idx size))                                          \
  X(161, duck_handle, create_map_type, (duck_handle key, duck_handle value))                                         \
  X(162, duck_handle, create_union_type, (duck_handle *types, const char **names, duck_idx n))                       \
  X(163, duck_handle, create_struct_type, (duck_handle *types, const char **names, duck_idx n))                      \
  X(165, duck_handle, create_decimal_type, (uint8_t width, uint8_t scale))                                           \
  X(166, int, get_type_id, (duck_handle type))                                                                       \
  X(184, void, destroy_logical_type, (duck_handle *type))                                                            \
  X(190, duck_handle, data_chunk_get_vector, (duck_handle chunk, duck_idx column))                                   \
  X(192, void, data_chunk_set_size, (duck_handle chunk, duck_idx size))                                              \
  X(194, void *, vector_get_data, (duck_handle vector))                                                              \
  X(195, uint64_t *, vector_get_validity, (duck_handle vector))                                                      \
  X(196, void, vector_ensure_validity_writable, (duck_handle vector))                                                \
  X(198, void, vector_assign_string_element_len, (duck_handle vector, duck_idx row, const char *, duck_idx))         \
  X(199, duck_handle, list_vector_get_child, (duck_handle vector))                                                   \
  X(201, int, list_vector_set_size, (duck_handle vector, duck_idx size))                                             \
  X(202, int, list_vector_reserve, (duck_handle vector, duck_idx capacity))                                          \
  X(203, duck_handle, struct_vector_get_child, (duck_handle vector, duck_idx field))                                 \
  X(204, duck_handle, array_vector_get_child, (duck_handle vector))                                                  \
  X(242, duck_handle, create_table_function, (void))                                                                 \
  X(243, void, destroy_table_function, (duck_handle *function))                                                      \
  X(244, void, table_function_set_name, (duck_handle function, const char *name))                                    \
  X(245, void, table_function_add_parameter, (duck_handle function, duck_handle type))                               \
  X(246, void, table_function_add_named_parameter, (duck_handle function, const char *name, duck_handle type))       \
  X(247, void, table_function_set_extra_info, (duck_handle function, void *data, duck_delete_callback))              \
  X(248, void, table_function_set_bind, (duck_handle function, duck_callback))                                       \
  X(249, void, table_function_set_init, (duck_handle function, duck_callback))                                       \
  X(250, void, table_function_set_local_init, (duck_handle function, duck_callback))                                 \
  X(251, void, table_function_set_function, (duck_handle function, duck_scan_callback))                              \
  X(252, void, table_function_supports_projection_pushdown, (duck_handle function, bool))                            \
  X(253, int, register_table_function, (duck_handle connection, duck_handle function))                               \
  X(254, void *, bind_get_extra_info, (duck_handle info))                                                            \
  X(255, void, bind_add_result_column, (duck_handle info, const char *name, duck_handle type))                       \
  X(256, duck_idx, bind_get_parameter_count, (duck_handle info))                                                     \
  X(257, duck_handle, bind_get_parameter, (duck_handle info, duck_idx i))                                            \
  X(258, duck_handle, bind_get_named_parameter, (duck_handle info, const char *name))                                \
  X(259, void, bind_set_bind_data, (duck_handle info, void *data, duck_delete_callback))                             \
  X(260, void, bind_set_cardinality, (duck_handle info, duck_idx rows, bool exact))                                  \
  X(261, void, bind_set_error, (duck_handle info, const char *message))                                              \
  X(263, void *, init_get_bind_data, (duck_handle info))                                                             \
  X(264, void, init_set_init_data, (duck_handle info, void *data, duck_delete_callback))                             \
  X(265, duck_idx, init_get_column_count, (duck_handle info))                                                        \
  X(266, duck_idx, init_get_column_index, (duck_handle info, duck_idx i))                                            \
  X(267, void, init_set_max_threads, (duck_handle info, duck_idx n))                                                 \
  X(268, void, init_set_error, (duck_handle info, const char *message))                                              \
  X(271, void *, function_get_init_data, (duck_handle info))                                                         \
  X(272, void *, function_get_local_init_data, (duck_handle info))                                                   \
  X(273, void, function_set_error, (duck_handle info, const char *message))                                          \
  X(274, void, add_replacement_scan, (duck_handle database, duck_replacement_callback, void *, duck_delete_callback)) \
  X(275, void, replacement_scan_set_function_name, (duck_handle info, const char *name))                             \
  X(276, void, replacement_scan_add_parameter, (duck_handle info, duck_handle value))                                \
  X(277, void, replacement_scan_set_error, (duck_handle info, const char *message))

struct duck_api {
#define DUCK_FIELD(slot, result, name, arguments) result(*name) arguments;
  DUCK_FUNCTIONS(DUCK_FIELD)
#undef DUCK_FIELD
};

#endif
