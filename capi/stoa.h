/* stoa.h: the C interface of stoa, for bindings to any language.
 *
 * Rows travel as streams of Arrow's C data interface, everything else as JSON in UTF-8. The library is loaded with
 * dlopen or linked (-lstoa); it needs libc alone.
 *
 * Results. Every function returns STOA_OK (0) or a class of error. Then *error, unless error is NULL, is a document
 *
 *     {"class": "corrupt", "message": "x.cfile[539+525]: corrupt: ...", "object": "x.cfile", "offset": 539,
 *      "length": 525, "path": "posidx/entry[1]/checksum", "reason": "expected ..., computed ..."}
 *
 * in which object, offset, length, path and reason are there if the error is about a place in a file. offset and length
 * are in bytes. Texts that functions give are released with stoa_free. Nothing is written through an output pointer
 * after an error, except *error.
 *
 * Handles. A stoa_t counts its references: a function that gives one gives one reference, stoa_retain adds one,
 * stoa_release takes one away, and with the last one the object goes. A stream keeps its table open. 0 is no handle;
 * a number that is no handle, or one of another kind, is STOA_INVALID and never a crash.
 *
 * Threads. All functions may be called by any number of threads at the same time, except that one stream, and one run,
 * belongs to one thread at a time, as Arrow's interface has it. stoa_cancel may be called by another one.
 *
 * fork(). The library has threads of its own, which a child of fork() does not get. There every function returns
 * STOA_FORKED at once, streams end with an error, and releasing does nothing. Start children by exec (in Python:
 * multiprocessing's "spawn" or "forkserver").
 */
#ifndef STOA_H
#define STOA_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE
#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4
struct ArrowSchema {
  const char *format;
  const char *name;
  const char *metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema **children;
  struct ArrowSchema *dictionary;
  void (*release)(struct ArrowSchema *);
  void *private_data;
};
struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void **buffers;
  struct ArrowArray **children;
  struct ArrowArray *dictionary;
  void (*release)(struct ArrowArray *);
  void *private_data;
};
#endif
#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE
struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
  int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
  const char *(*get_last_error)(struct ArrowArrayStream *);
  void (*release)(struct ArrowArrayStream *);
  void *private_data;
};
#endif

typedef uint64_t stoa_t;

/* Classes of errors. In an error's document: "corrupt", "unsupported", ... */
#define STOA_OK 0
#define STOA_CORRUPT 1     /* the bytes contradict the format */
#define STOA_UNSUPPORTED 2 /* the bytes may be fine; stoa does not have what they need */
#define STOA_INVALID 3     /* the caller's mistake: an option, a column, a predicate, a handle */
#define STOA_LIMIT 4       /* the file asks for more than the limits allow */
#define STOA_BUG 5         /* a mistake of stoa */
#define STOA_CHANGED 6     /* a file is not what it was when it was opened or planned */
#define STOA_NOT_FOUND 7   /* no file has this name, or no row this key */
#define STOA_IO 8          /* the system, or a store, did not do it */
#define STOA_CANCELLED 9   /* stoa_cancel */
#define STOA_UNPROVEN 10   /* an output is not what went in; it did not get its name */
#define STOA_FORKED 11     /* the process is a child of fork() */

/* The version, as `stoa version` says it. It is not released. */
const char *stoa_version(void);

/* stoa_free releases a text. NULL is nothing. */
void stoa_free(char *text);

/* stoa_retain adds a reference to a handle, stoa_release takes one away. */
int stoa_retain(stoa_t h);
int stoa_release(stoa_t h);

/* stoa_cancel ends what a scan or a run is doing, or all scans of a table; they end with STOA_CANCELLED. It returns at
 * once. A table can be scanned again afterwards. */
int stoa_cancel(stoa_t h);

/* stoa_open opens a table. request:
 *
 *   paths      array of PATH, PATH#TABLE, addresses; several are one table, one after another. Needed
 *   format     name of a format; absent or "": it is detected
 *   options    object of the format's reading options, as `stoa formats NAME` lists them, values as text
 *   recover    true: search for what a damaged footer or index no longer says
 *   no_verify  true: do not compare checksums
 *   mmap       true: map local files, which must not change, instead of reading them
 *   environment  object: variables that the library is to see from now on (the process's are those of when it was
 *              loaded), such as AWS_ENDPOINT_URL_S3 for addresses
 *   limits     object: page, metadata, opening (bytes), fields, depth (numbers); 0 or absent: the default
 *   cancel     a handle of stoa_token, by which the call can be ended
 */
int stoa_open(const char *request, stoa_t *table, char **error);

/* stoa_open_split opens a split that stoa_plan gave, of this or another process. The handle is used like a table's; a
 * scan takes batch, damaged, parallel and memory only, as the rest is in the split. */
int stoa_open_split(const char *split, stoa_t *table, char **error);

/* stoa_info says what a table is:
 *   {"sources": [{"name", "format", "meta": [{"Key", "Value"}]}], "rows": N or null (only reading shows),
 *    "keys": [...], "keyed": bool, "primary_key": [...] or null, "findings": [...]}  */
int stoa_info(stoa_t table, char **info, char **error);

/* stoa_schema exports the schema of a scan, or of the table if spec is NULL; the caller releases it. */
int stoa_schema(stoa_t table, const char *spec, struct ArrowSchema *out, char **error);

/* stoa_scan makes a scan; no row is read before the first get_next or stoa_wait. spec, all members optional; NULL: all
 * rows:
 *
 *   columns    array of dotted paths; absent or null: all; []: none, rows are counted
 *   where      predicate, as --where takes it
 *   rows       [from, to): positions before any filter
 *   limit      largest number of rows
 *   batch      largest number of rows in a batch (65,536)
 *   damaged    "fail", "skip-rows", "null-cells"
 *   unordered  true: give up the table's order
 *   dictionaries  "codes": columns of strings whose metadata say that they have dictionaries come as dictionary arrays,
 *              with int32 indices; "values" or absent: as strings. Not in splits
 *   parallel   workers; absent or 0: one a processor, one alone for few rows
 *   memory     bytes that the scan may hold, about; 0: no limit of its own
 *   key        array of texts: only rows with this key (a prefix of "keys" of stoa_info)
 *   row        a position: only this row
 *
 * The stream's errors are texts; stoa_scan_report has the document of an error. scan may be NULL. */
int stoa_scan(stoa_t table, const char *spec, struct ArrowArrayStream *out, stoa_t *scan, char **error);

/* stoa_wait waits until the scan's next batch, its end or its error is there, at most so many milliseconds, and returns
 * 1 if so, 0 if not, and -1 for a bad handle. The call of get_next that follows a 1 does not block: hosts that must look
 * at signals now and then wait so. */
int stoa_wait(stoa_t scan, int64_t milliseconds);

/* stoa_scan_report says how a scan went, so far or at its end:
 *   {"rows": N, "ended": bool, "error": {...} or null, "losses": [...], "findings": [...]}  */
int stoa_scan_report(stoa_t scan, char **report, char **error);

/* stoa_count counts the rows of a scan, from metadata if they suffice. Its spec, and that of stoa_plan, may have cancel: a
 * handle of stoa_token, by which the call can be ended. */
int stoa_count(stoa_t table, const char *spec, int64_t *rows, char **error);

/* stoa_plan cuts a scan into splits of about target bytes (0: 256 MB):
 *   {"plan": NAME, "splits": [SPLIT, ...]}; each SPLIT is a document for stoa_open_split, in any process.
 * A target of which there would be more than 100,000 splits is taken larger. */
int stoa_plan(stoa_t table, const char *spec, int64_t target, char **plan, char **error);

/* stoa_write writes a stream's rows as a new table, which appears when it is whole and was read back. request:
 *   path, format (absent: by the extension), options (object), rows (a hint), no_check, environment as of stoa_open.
 * The stream is consumed, also after an error. summary: {"rows", "bytes", "files", "checked", "unchecked_columns",
 * "altered", "retyped", "notes"}. cancel may be 0, or a handle of stoa_token with which the call can be ended. */
int stoa_write(const char *request, struct ArrowArrayStream *rows, stoa_t cancel, char **summary, char **error);

/* stoa_change changes a CarbonData table in place. request: {"change": NAME, "table": PLACE, "format", "options": {},
 * "with": {...}, "disable_dependents": true if views of the table are to be marked as out of date first}. "with" holds
 * the options of the change, in the words of the Go library's structs. NAME is
 *   append, merge                 with rows
 *   create                        rows is a stream of the table's schema, without rows
 *   add_column, alter_column      rows is a stream of one column, without rows, for the column's type; of alter_column
 *                                 perhaps of none, if the type stays as it is
 *   delete, update, delete_segments, compact, merge_indexes, drop_column, rename, truncate, set_properties,
 *   add_partition, drop_partition, add_segment, clean, drop
 *                                 rows is NULL */
int stoa_change(const char *request, struct ArrowArrayStream *rows, stoa_t cancel, char **result, char **error);

/* stoa_token makes a handle that stands for one call: stoa_cancel of it ends the call. */
int stoa_token(stoa_t *token, char **error);

/* stoa_run begins a verb of the command in this process: request is {"args": ["verify", "x.cfile", "-f", "json"]}, and
 * perhaps "input", a text for standard input, and "environment" as of stoa_open. `stoa help VERB` documents verbs and
 * their JSON. The verb runs beside the caller; stoa_read gives what it writes. */
int stoa_run(const char *request, stoa_t *run, char **error);

/* stoa_read copies at most size bytes of a run's output to buffer, waiting for them at most so many milliseconds
 * (negative: as long as it takes). It returns their number, 0 at the end of the output, -1 if the time is up, and -2 for
 * a bad handle. */
int64_t stoa_read(stoa_t run, char *buffer, int64_t size, int64_t milliseconds);

/* stoa_run_report waits for the end of a run, and says {"status": exit status, "messages": standard error, "error":
 * {...} or null}. What was not read of the output is dropped. */
int stoa_run_report(stoa_t run, char **report, char **error);

/* stoa_memory says how much memory of the C heap the library holds: bytes in use by batches that are not released, and
 * bytes that are kept for the next ones; stoa_trim gives the latter back. */
void stoa_memory(int64_t *used, int64_t *kept);
void stoa_trim(void);

/* stoa_handles is the number of handles that are not released. */
int64_t stoa_handles(void);

#ifdef __cplusplus
}
#endif

#endif
