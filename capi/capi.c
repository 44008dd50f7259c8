// The functions of stoa.h. They look whether the process is a child of fork(), in which Go's runtime has no threads and
// would wait for ever, before they call Go.
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "stoa.h"

#include "_cgo_export.h"

static atomic_int forked;

static void in_child(void) { atomic_store(&forked, 1); }

__attribute__((constructor)) static void watch_forks(void) { pthread_atfork(NULL, NULL, in_child); }

static const char fork_error[] =
    "{\"class\":\"forked\",\"message\":\"stoa cannot be used in a child of fork(): its threads are the parent's; "
    "start children by spawn or exec\"}";

static int refuse(char **error) {
  if (error) *error = strdup(fork_error);
  return STOA_FORKED;
}

#define GUARD(error) \
  if (atomic_load(&forked)) return refuse(error)

const char *stoa_version(void) {
  static _Atomic(const char *) version; // goVersion gives the same every time
  if (!atomic_load(&version)) atomic_store(&version, atomic_load(&forked) ? "unknown" : goVersion());
  return atomic_load(&version);
}

void stoa_free(char *text) { free(text); }

int stoa_retain(stoa_t h) { return atomic_load(&forked) ? STOA_FORKED : goRetain(h); }

int stoa_release(stoa_t h) { return atomic_load(&forked) ? STOA_OK : goRelease(h); }

int stoa_cancel(stoa_t h) { return atomic_load(&forked) ? STOA_FORKED : goCancel(h); }

int stoa_open(const char *request, stoa_t *table, char **error) {
  GUARD(error);
  return goOpen((char *)request, table, error);
}

int stoa_open_split(const char *split, stoa_t *table, char **error) {
  GUARD(error);
  return goOpenSplit((char *)split, table, error);
}

int stoa_info(stoa_t table, char **info, char **error) {
  GUARD(error);
  return goInfo(table, info, error);
}

int stoa_schema(stoa_t table, const char *spec, struct ArrowSchema *out, char **error) {
  GUARD(error);
  return goSchema(table, (char *)spec, out, error);
}

int stoa_count(stoa_t table, const char *spec, int64_t *rows, char **error) {
  GUARD(error);
  return goCount(table, (char *)spec, rows, error);
}

int stoa_plan(stoa_t table, const char *spec, int64_t target, char **plan, char **error) {
  GUARD(error);
  return goPlan(table, (char *)spec, target, plan, error);
}

int stoa_wait(stoa_t scan, int64_t milliseconds) { return atomic_load(&forked) ? -1 : goWait(scan, milliseconds); }

int stoa_scan_report(stoa_t scan, char **report, char **error) {
  GUARD(error);
  return goScanReport(scan, report, error);
}

int stoa_write(const char *request, struct ArrowArrayStream *rows, stoa_t cancel, char **summary, char **error) {
  GUARD(error);
  return goWrite((char *)request, rows, cancel, summary, error);
}

int stoa_change(const char *request, struct ArrowArrayStream *rows, stoa_t cancel, char **result, char **error) {
  GUARD(error);
  return goChange((char *)request, rows, cancel, result, error);
}

int stoa_token(stoa_t *token, char **error) {
  GUARD(error);
  return goToken(token);
}

int stoa_run(const char *request, stoa_t *run, char **error) {
  GUARD(error);
  return goRun((char *)request, run, error);
}

int64_t stoa_read(stoa_t run, char *buffer, int64_t size, int64_t milliseconds) {
  return atomic_load(&forked) ? -2 : goRead(run, buffer, size, milliseconds);
}

int stoa_run_report(stoa_t run, char **report, char **error) {
  GUARD(error);
  return goRunReport(run, report, error);
}

void stoa_memory(int64_t *used, int64_t *kept) {
  *used = *kept = 0;
  if (!atomic_load(&forked)) goMemory(used, kept);
}

void stoa_trim(void) {
  if (!atomic_load(&forked)) goTrim();
}

int64_t stoa_handles(void) { return atomic_load(&forked) ? 0 : goHandles(); }

// A stream's private data: its scan, and the text of its last error.
struct stream {
  stoa_t scan;
  char *error;
};

static int fail(struct stream *s, char *text) {
  free(s->error);
  s->error = text;
  return EIO;
}

static int stream_schema(struct ArrowArrayStream *x, struct ArrowSchema *out) {
  struct stream *s = x->private_data;
  if (atomic_load(&forked)) return fail(s, strdup("stoa cannot be used in a child of fork()"));
  char *text = NULL;
  return goStreamSchema(s->scan, out, &text) ? fail(s, text) : 0;
}

static int stream_next(struct ArrowArrayStream *x, struct ArrowArray *out) {
  struct stream *s = x->private_data;
  if (atomic_load(&forked)) return fail(s, strdup("stoa cannot be used in a child of fork()"));
  char *text = NULL;
  return goStreamNext(s->scan, out, &text) ? fail(s, text) : 0;
}

static const char *stream_error(struct ArrowArrayStream *x) { return ((struct stream *)x->private_data)->error; }

static void stream_release(struct ArrowArrayStream *x) {
  struct stream *s = x->private_data;
  if (!atomic_load(&forked)) {
    goCancel(s->scan);
    goRelease(s->scan);
  }
  free(s->error);
  free(s);
  x->release = NULL;
  x->private_data = NULL;
}

int stoa_scan(stoa_t table, const char *spec, struct ArrowArrayStream *out, stoa_t *scan, char **error) {
  GUARD(error);
  struct stream *s = calloc(1, sizeof *s);
  if (!s) return STOA_LIMIT;
  int rc = goScan(table, (char *)spec, &s->scan, error);
  if (rc) {
    free(s);
    return rc;
  }
  if (scan) {
    goRetain(s->scan);
    *scan = s->scan;
  }
  *out = (struct ArrowArrayStream){stream_schema, stream_next, stream_error, stream_release, s};
  return STOA_OK;
}

// An exported batch pins the buffers that are Go's for as long as the host has it.
struct pinned {
  void (*release)(struct ArrowArray *);
  void *private_data;
  uintptr_t pins;
};

static void release_pinned(struct ArrowArray *a) {
  struct pinned *p = a->private_data;
  if (atomic_load(&forked)) {
    a->release = NULL; // the child's copy: it goes with the child
    return;
  }
  a->private_data = p->private_data;
  p->release(a);
  a->release = NULL;
  goUnpin(p->pins);
  free(p);
}

void stoa_pin(struct ArrowArray *a, uintptr_t pins) {
  struct pinned *p = malloc(sizeof *p);
  if (!p) abort();
  *p = (struct pinned){a->release, a->private_data, pins};
  a->private_data = p;
  a->release = release_pinned;
}
