// What a program in C does with stoa.h: every function, errors, handles that are none, many threads, fork, and memory over
// many rounds of open, scan and close. Prints a line a part, and exits 1 at the first thing that is not as expected.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static const char *dir;

stoa_t open_table(const char *name) {
  char request[4096], *error = NULL;
  stoa_t t = 0;
  snprintf(request, sizeof request, "{\"paths\":[\"%s/%s\"]}", dir, name);
  if (stoa_open(request, &t, &error)) {
    fprintf(stderr, "%s: %s\n", name, error);
    exit(1);
  }
  return t;
}

int64_t read_all(stoa_t t, const char *spec, int64_t *sum, int *rc, char *message, size_t size) {
  struct ArrowArrayStream s;
  struct ArrowSchema schema;
  char *error = NULL;
  CHECK(stoa_scan(t, spec, &s, NULL, &error) == STOA_OK);
  CHECK(s.get_schema(&s, &schema) == 0);
  CHECK(strcmp(schema.format, "+s") == 0);
  schema.release(&schema);
  int64_t rows = 0;
  *rc = 0;
  for (;;) {
    struct ArrowArray a;
    if ((*rc = s.get_next(&s, &a))) {
      if (message) snprintf(message, size, "%s", s.get_last_error(&s));
      break;
    }
    if (!a.release) break;
    rows += a.length;
    if (sum && a.n_children > 0) {
      const int32_t *v = (const int32_t *)a.children[0]->buffers[1] + a.children[0]->offset;
      for (int64_t i = 0; i < a.length; i++) *sum += v[i];
    }
    a.release(&a);
    CHECK(a.release == NULL);
  }
  s.release(&s);
  return rows;
}

static int64_t resident(void) {
  long pages = 0, all = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  if (!f || fscanf(f, "%ld %ld", &all, &pages) != 2) pages = 0;
  if (f) fclose(f);
  return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

static void functions(void) {
  char *text = NULL, *error = NULL;
  int rc;
  int64_t n = 0, sum = 0;
  CHECK(strlen(stoa_version()) > 0);
  stoa_t t = open_table("key.cfile");
  CHECK(stoa_info(t, &text, &error) == STOA_OK && strstr(text, "\"cfile\"") && strstr(text, "\"rows\":400"));
  stoa_free(text);
  struct ArrowSchema schema;
  CHECK(stoa_schema(t, NULL, &schema, &error) == STOA_OK);
  CHECK(schema.n_children == 1 && strcmp(schema.children[0]->name, "value") == 0);
  schema.release(&schema);
  CHECK(stoa_count(t, NULL, &n, &error) == STOA_OK && n == 400);
  CHECK(read_all(t, NULL, &sum, &rc, NULL, 0) == 400 && rc == 0);
  CHECK(read_all(t, "{\"limit\":7,\"batch\":2}", NULL, &rc, NULL, 0) == 7 && rc == 0);
  CHECK(read_all(t, "{\"rows\":[10,30]}", NULL, &rc, NULL, 0) == 20 && rc == 0);
  CHECK(read_all(t, "{\"rows\":[10,10]}", NULL, &rc, NULL, 0) == 0 && rc == 0);
  CHECK(read_all(t, "{\"columns\":[]}", NULL, &rc, NULL, 0) == 400 && rc == 0);
  int64_t some = read_all(t, "{\"where\":\"value > 2000000000\"}", NULL, &rc, NULL, 0);
  CHECK(some == 11 && rc == 0);
  CHECK(stoa_plan(t, "{\"columns\":[\"value\"]}", 0, &text, &error) == STOA_OK);
  char *split = strstr(text, "\"splits\":[") + strlen("\"splits\":[");
  split[strlen(split) - 2] = 0; // one split: what is between the brackets
  stoa_t part;
  CHECK(stoa_open_split(split, &part, &error) == STOA_OK);
  stoa_free(text);
  int64_t again = 0;
  CHECK(read_all(part, NULL, &again, &rc, NULL, 0) == 400 && rc == 0 && again == sum);
  CHECK(stoa_count(part, NULL, &n, &error) == STOA_INVALID);
  stoa_free(error);
  stoa_release(part);
  // a stream keeps its table
  struct ArrowArrayStream s;
  CHECK(stoa_scan(t, NULL, &s, NULL, &error) == STOA_OK);
  CHECK(stoa_release(t) == STOA_OK);
  struct ArrowArray a;
  CHECK(s.get_next(&s, &a) == 0 && a.length > 0);
  s.release(&s); // and a batch outlives its stream
  const int32_t *v = a.children[0]->buffers[1];
  volatile int32_t first = v[0];
  (void)first;
  a.release(&a);
  printf("functions: right\n");
}

static void errors(void) {
  char *error = NULL, message[4096] = "";
  stoa_t t = 0;
  int rc;
  CHECK(stoa_open("{\"paths\":[\"/nowhere/at-all\"]}", &t, &error) == STOA_NOT_FOUND);
  CHECK(strstr(error, "\"not-found\"") && strstr(error, "/nowhere/at-all"));
  stoa_free(error);
  CHECK(stoa_open("{\"pahts\":[]}", &t, &error) == STOA_INVALID);
  stoa_free(error);
  CHECK(stoa_open("{", &t, NULL) == STOA_INVALID);
  CHECK(stoa_count(12345678, NULL, NULL, &error) == STOA_INVALID);
  stoa_free(error);
  CHECK(stoa_release(12345678) == STOA_INVALID && stoa_retain(0) == STOA_INVALID);
  t = open_table("damaged/key.cfile");
  struct ArrowArrayStream s;
  CHECK(stoa_scan(t, "{\"where\":\"nothing = 1\"}", &s, NULL, &error) == STOA_INVALID);
  stoa_free(error);
  stoa_t scan;
  CHECK(stoa_scan(t, NULL, &s, &scan, &error) == STOA_OK);
  struct ArrowArray a;
  while ((rc = s.get_next(&s, &a)) == 0 && a.release) a.release(&a);
  CHECK(rc != 0);
  snprintf(message, sizeof message, "%s", s.get_last_error(&s));
  CHECK(strstr(message, "expected 0x0eea0a49, computed 0x0f01d90f"));
  char *report = NULL;
  CHECK(stoa_scan_report(scan, &report, &error) == STOA_OK);
  CHECK(strstr(report, "\"class\":\"corrupt\"") && strstr(report, "\"offset\":539") && strstr(report, "\"length\":525"));
  stoa_free(report);
  s.release(&s);
  stoa_release(scan);
  CHECK(read_all(t, "{\"damaged\":\"skip-rows\"}", NULL, &rc, NULL, 0) == 272 && rc == 0);
  stoa_release(t);
  printf("errors: right\n");
}

static void runs(void) {
  char request[4096], buffer[1 << 16], *error = NULL, *report = NULL;
  stoa_t run;
  snprintf(request, sizeof request, "{\"args\":[\"verify\",\"%s/damaged/key.cfile\",\"-f\",\"json\"]}", dir);
  CHECK(stoa_run(request, &run, &error) == STOA_OK);
  int64_t n, all = 0;
  while ((n = stoa_read(run, buffer + all, sizeof buffer - 1 - all, -1)) > 0) all += n;
  buffer[all] = 0;
  CHECK(n == 0 && strstr(buffer, "cfile.block.checksum"));
  CHECK(stoa_run_report(run, &report, &error) == STOA_OK && strstr(report, "\"status\":3"));
  stoa_free(report);
  stoa_release(run);
  CHECK(stoa_run("{\"args\":[\"nonsense\"]}", &run, &error) == STOA_OK); // and nobody reads it
  CHECK(stoa_run_report(run, &report, &error) == STOA_OK && strstr(report, "\"status\":2"));
  stoa_free(report);
  stoa_release(run);
  printf("runs: right\n");
}

static void writes(void) {
  char request[4096], *error = NULL, *summary = NULL;
  stoa_t t = open_table("key.cfile");
  struct ArrowArrayStream s;
  CHECK(stoa_scan(t, NULL, &s, NULL, &error) == STOA_OK);
  snprintf(request, sizeof request, "{\"path\":\"%s/written.parquet\"}", dir);
  int rc = stoa_write(request, &s, 0, &summary, &error);
  if (rc) fprintf(stderr, "%s\n", error);
  CHECK(rc == STOA_OK && strstr(summary, "\"rows\":400") && strstr(summary, "\"checked\":true"));
  stoa_free(summary);
  int64_t a = 0, b = 0;
  CHECK(read_all(t, NULL, &a, &rc, NULL, 0) == 400);
  stoa_t w = open_table("written.parquet");
  CHECK(read_all(w, NULL, &b, &rc, NULL, 0) == 400 && a == b);
  stoa_release(w);
  stoa_release(t);
  printf("writes: right\n");
}

static stoa_t shared;

static void *reader(void *x) {
  for (int i = 0; i < *(int *)x; i++) {
    int rc;
    int64_t sum = 0;
    CHECK(read_all(shared, NULL, &sum, &rc, NULL, 0) == 400 && rc == 0);
    stoa_t t = open_table("key.cfile");
    CHECK(read_all(t, "{\"where\":\"value > 2000000000\"}", NULL, &rc, NULL, 0) == 11 && rc == 0);
    stoa_release(t);
  }
  return NULL;
}

static void threads(int rounds) {
  pthread_t all[8];
  shared = open_table("key.cfile");
  for (int i = 0; i < 8; i++) CHECK(pthread_create(&all[i], NULL, reader, &rounds) == 0);
  for (int i = 0; i < 8; i++) pthread_join(all[i], NULL);
  stoa_release(shared);
  printf("threads: right\n");
}

static void rounds(int n) {
  int64_t begin = 0;
  for (int i = 0; i < n; i++) {
    int rc;
    if (i == n / 5) begin = resident(); // by then everything that stays has been allocated
    stoa_t t = open_table("key.cfile");
    CHECK(read_all(t, NULL, NULL, &rc, NULL, 0) == 400 && rc == 0);
    stoa_release(t);
  }
  int64_t grown = (resident() - begin) >> 10;
  printf("%d rounds of open, scan, close: %lld KiB more than after a fifth of them\n", n, (long long)grown);
  CHECK(grown < 16 << 10);
}

static void forks(void) {
  stoa_t t = open_table("key.cfile");
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    char *error = NULL;
    int64_t n;
    alarm(10); // a child that hangs is killed, and noticed
    int rc = stoa_count(t, NULL, &n, &error);
    _exit(rc == STOA_FORKED && error && strstr(error, "fork()") ? 0 : 1);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  stoa_release(t);
  printf("fork: refused\n");
}

int main(int argc, char **argv) {
  CHECK(argc == 3);
  dir = argv[1];
  int n = atoi(argv[2]);
  functions();
  errors();
  runs();
  writes();
  threads(n / 100 + 1);
  holds();
  rounds(n);
  forks();
  int64_t used, kept;
  usleep(300000); // scans that were dropped end on their own
  stoa_memory(&used, &kept);
  printf("at the end: %lld handles, %lld bytes in use, %lld kept\n", (long long)stoa_handles(), (long long)used,
         (long long)kept);
  CHECK(stoa_handles() == 0 && used == 0);
  stoa_trim();
  stoa_memory(&used, &kept);
  CHECK(kept == 0);
  return 0;
}
