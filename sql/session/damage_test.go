package session

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"stoa"
	"stoa/cmd/stoa/verbs"
	"stoa/fault"
)

// TestDamagedFiles: queries over files with changed bytes end with rows or an error, never in another way. An
// error names the file. Rows are the original ones, or, where a file has no checksums, those that the library reads
// from it; where the library fails, no query over all columns returns rows. STOA_FLIPS is the number of files (100;
// in short 20), STOA_SEED the first.
func TestDamagedFiles(t *testing.T) {
	flips := 100
	if testing.Short() {
		flips = 20
	}
	if n, err := strconv.Atoi(os.Getenv("STOA_FLIPS")); err == nil {
		flips = n
	}
	seed, _ := strconv.ParseUint(os.Getenv("STOA_SEED"), 10, 64)
	files := damageable(t)
	q := newAsked(t, &verbs.SQLFlags{Threads: 2})
	queries := []string{"SELECT * FROM %s", "SELECT count(*) FROM %s",
		"SELECT count(*) FROM %s a JOIN %[1]s b ON true LIMIT 5",
		"SELECT DISTINCT * FROM %s ORDER BY ALL LIMIT 3", "SUMMARIZE FROM %s"}
	whole := map[string]string{}
	for _, f := range files {
		for _, query := range queries {
			query = fmt.Sprintf(query, quote(f))
			whole[query] = q.answer(t, query)
		}
		q.forget()
	}
	failed, same, other := 0, 0, 0
	for i := range flips {
		r := rand.New(rand.NewPCG(seed+uint64(i), 24))
		f := files[r.IntN(len(files))]
		bad := filepath.Join(t.TempDir(), filepath.Base(f))
		harm(t, r, f, bad)
		query := queries[r.IntN(len(queries))]
		got := q.answer(t, fmt.Sprintf(query, quote(bad)))
		switch {
		case q.failed != nil:
			failed++
			text := q.failed.Error()
			named := strings.Contains(text, filepath.Base(bad)) || strings.Contains(text, "column ")
			if errors.Is(q.failed, fault.Bug) || !named {
				t.Errorf("flip %d of %s, %s: %v", i, f, query, q.failed)
			}
		case !strings.Contains(query, "count(*)") && !readable(t, bad):
			t.Errorf("flip %d of %s: the library cannot read it, %s gives %.300s", i, f, query, got)
		case got == whole[fmt.Sprintf(query, quote(f))]:
			same++
		default:
			other++
			if strings.HasPrefix(query, "SELECT * ") {
				q.likeTheLibrary(t, bad)
			}
			if strings.HasSuffix(f, ".cfile") && !strings.Contains(f, ".nock.") {
				t.Errorf("flip %d of %s, which has checksums: other rows: %.300s", i, f, got)
			}
		}
		q.forget()
		os.Remove(bad)
	}
	if err := q.Statement(context.Background(), "SELECT 42"); err != nil {
		t.Errorf("after them: %v", err)
	}
	t.Logf("COUNT damaged files: %d queries: %d errors, %d the same rows, %d others (no checksums)", flips, failed,
		same, other)
	if failed < flips/10 {
		t.Errorf("only %d of %d changes were noticed", failed, flips)
	}
}

// readable reports whether the library reads all of a table.
func readable(t *testing.T, file string) bool {
	t.Helper()
	table, err := stoa.Open(t.Context(), file, stoa.OpenOptions{})
	if err != nil {
		return false
	}
	defer table.Close()
	for _, err := range table.Scan(t.Context(), stoa.ScanSpec{}) {
		if err != nil {
			return false
		}
	}
	return true
}

// likeTheLibrary compares a query over a damaged file with what the library reads from it.
func (q *asked) likeTheLibrary(t *testing.T, file string) {
	t.Helper()
	want, err := stoa.Open(t.Context(), file, stoa.OpenOptions{})
	if err != nil {
		t.Error(err)
		return
	}
	defer want.Close()
	out := filepath.Join(t.TempDir(), "out.arrow")
	err = q.to(out, "FROM "+quote(file))
	q.flags.File = ""
	if err != nil {
		t.Errorf("%s: %v", file, err)
		return
	}
	alike(t, file, want, out)
}

// damageable returns small files of all formats.
func damageable(t *testing.T) (out []string) {
	t.Helper()
	for _, pattern := range []string{"kudu/*/*/*.cfile", "kudu/*/*.cfile", "trevni/*/*.trv", "redfile/*/*.red",
		"carbon/*/*/*.carbondata", "carbon/*/*/*/*.carbondata"} {
		found, err := filepath.Glob("../../corpus/" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, found[:min(len(found), 8)]...)
	}
	if len(out) < 10 {
		t.Fatalf("expected 10 files or more, found %d", len(out))
	}
	return out
}

func harm(t *testing.T, r *rand.Rand, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	switch r.IntN(4) {
	case 0:
		b = b[:r.IntN(len(b))]
	case 1:
		for range 1 + r.IntN(20) {
			b[r.IntN(len(b))] = byte(r.Uint32())
		}
	default:
		b[r.IntN(len(b))] ^= 1 << r.IntN(8)
	}
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
