package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"stoa/cmd/stoa/internal/cli"
	"stoa/store/remote/remotetest"
	"stoa/store/web"
)

// drawnTable is a table of random rows: its rows as JSON lines, and for each of them the value of column a.
type drawnTable struct {
	rows []string
	a    []int
}

func drawTable(r *rand.Rand) (d drawnTable) {
	n := []int{1, 100, 5_000, 40_000}[r.IntN(4)]
	width := r.IntN(200)
	for i := range n {
		a := r.IntN(1000)
		b, c := "null", "null"
		if r.IntN(9) > 0 {
			b = strconv.Quote(fmt.Sprintf("%d-%0*x", i, width, r.Uint64()>>r.IntN(64)))
		}
		if r.IntN(5) > 0 {
			c = strconv.FormatInt(r.Int64()>>r.IntN(60), 10)
		}
		d.a = append(d.a, a)
		d.rows = append(d.rows, fmt.Sprintf(`{"a":%d,"b":%s,"c":%s}`, a, b, c))
	}
	return d
}

// question is a verb with its arguments before the place, and what it prints.
type question struct {
	args []string
	want string
}

func (d drawnTable) ask(r *rand.Rand) question {
	lines := func(rows []string) string {
		if len(rows) == 0 {
			return ""
		}
		return strings.Join(rows, "\n") + "\n"
	}
	least := r.IntN(1100)
	var some []string
	for i, row := range d.rows {
		if d.a[i] >= least {
			some = append(some, row)
		}
	}
	where := fmt.Sprint("a >= ", least)
	k := r.IntN(len(d.rows) + 2)
	return []question{
		{[]string{"cat", "-f", "jsonl"}, lines(d.rows)},
		{[]string{"cat", "-f", "jsonl", "--damaged", "skip-rows"}, lines(d.rows)},
		{[]string{"cat", "-f", "jsonl", "--where", where}, lines(some)},
		{[]string{"head", "-f", "jsonl", "-n", fmt.Sprint(k)}, lines(d.rows[:min(k, len(d.rows))])},
		{[]string{"tail", "-f", "jsonl", "-n", fmt.Sprint(k)}, lines(d.rows[max(len(d.rows)-k, 0):])},
		{[]string{"count"}, fmt.Sprintln(len(d.rows))},
		{[]string{"count", "--where", where}, fmt.Sprintln(len(some))},
		{[]string{"recover", "-q", "--to", "jsonl", "-o", "-"}, lines(d.rows)},
		{[]string{"convert", "-q", "--to", "jsonl", "-o", "-"}, lines(d.rows)},
	}[r.IntN(9)]
}

// TestDrawnTablesAtFaultyStores: whatever a store does, also if it sends other ranges than it was asked for, or if
// objects are replaced by equal ones, a verb prints the rows that were drawn, or fails with status 1 and names the
// place; verify finds no damage. STOA_SEED and STOA_ROUNDS choose others.
func TestDrawnTablesAtFaultyStores(t *testing.T) {
	seed, rounds := seedAndRounds(t, 40, 8)
	right, failed := 0, 0
	for round := range rounds {
		r := rand.New(rand.NewPCG(seed+uint64(round), 22))
		d := drawTable(r)
		dir := filepath.Join(t.TempDir(), "bucket")
		name := d.store(t, r, dir)
		for range 6 {
			q := d.ask(r)
			if r.IntN(8) == 0 {
				q = question{[]string{"verify", "-q"}, ""}
			}
			what := fmt.Sprintf("seed %d, %s, %v", seed+uint64(round), name, q.args)
			got, plan := underFaults(t, r, dir, name, q.args)
			rows, _, _ := strings.Cut(got, "\nstderr:")
			if q.args[0] == "verify" {
				rows = ""
			}
			switch {
			case strings.HasSuffix(got, "status: 0") && rows == q.want:
				right++
			case strings.HasSuffix(got, "status: 1") &&
				(strings.Contains(got, "BUCKET") || strings.Contains(got, "://")) && strings.HasPrefix(q.want, rows):
				failed++
			default:
				t.Errorf("%s, %s: %d bytes of rows, want %d\n%s", what, plan, len(rows), len(q.want),
					got[max(len(got)-1000, 0):])
			}
		}
	}
	t.Logf("%d answers are right, %d are errors", right, failed)
	if right < failed/4 {
		t.Error("too few answers")
	}
}

// store writes the table in a random format, and returns its name.
func (d drawnTable) store(t *testing.T, r *rand.Rand, dir string) (name string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	src := filepath.Join(t.TempDir(), "in.jsonl")
	write(t, src, strings.Join(d.rows, "\n")+"\n")
	schema := filepath.Join(t.TempDir(), "schema.txt")
	write(t, schema, "a: int32, b: utf8, c: int64\n")
	formats := []string{"parquet", "cfile", "trevni", "redfile", "carbon", "arrow", "iceberg", "delta", "jsonl"}
	format := formats[r.IntN(len(formats))]
	name = "t/x." + format
	args := []string{"convert", "-q", src, "--schema", schema, "--to", format, "-o",
		filepath.Join(dir, filepath.FromSlash(name))}
	if slices.Contains([]string{"cfile", "carbon", "iceberg", "delta"}, format) {
		name = "t"
		args[len(args)-1] = filepath.Join(dir, name)
	} else if err := os.MkdirAll(filepath.Join(dir, "t"), 0o777); err != nil {
		t.Fatal(err)
	}
	if format == "parquet" && r.IntN(2) == 0 {
		args = append(args, "--opt", fmt.Sprint("row-group-rows=", 1000+r.IntN(20_000)))
	}
	if got := said(dir, args...); !strings.HasSuffix(got, "status: 0") {
		t.Fatal(got)
	}
	return name
}

// underFaults runs a verb at a random kind of server with random faults, and returns what it says, and a description of
// the faults.
func underFaults(t *testing.T, r *rand.Rand, dir, name string, verb []string) (got, plan string) {
	t.Helper()
	faults := remotetest.NewFaults([]float64{0, 0.05, 0.2, 0.6}[r.IntN(4)], r.Uint64())
	faults.Latency = time.Duration(r.IntN(5)) * time.Millisecond
	if r.IntN(3) > 0 {
		faults.Kinds = append(faults.Kinds, remotetest.Odd...)
	}
	if r.IntN(6) == 0 {
		faults.DieAt.Store(1 + r.Int64N(30))
	}
	s3 := &remotetest.S3{Dir: filepath.Dir(dir), Page: 1 + r.IntN(9), NoETags: r.IntN(6) == 0}
	changeAt := int64(-1)
	if r.IntN(6) == 0 {
		changeAt = 1 + r.Int64N(30)
	}
	var h http.Handler = s3
	isWeb := r.IntN(3) == 0
	if isWeb {
		h = remotetest.Web(filepath.Dir(dir), web.Index)
	}
	var n atomic.Int64
	h = faults.On(h)
	all := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) == changeAt {
			s3.Version.Add(1)
		}
		h.ServeHTTP(w, r)
	})
	asS3(t, all)
	place := "s3://bucket"
	if isWeb {
		s := httptest.NewServer(all)
		defer s.Close()
		place = s.URL + "/bucket"
	}
	cli.RemoteOptions.Tries = 2 + r.IntN(7)
	cli.RemoteOptions.Idle = 5 * time.Second
	args := append(append([]string{}, verb...), place+"/"+name)
	if r.IntN(3) == 0 {
		args = append(args, "--cache", t.TempDir())
	}
	if r.IntN(2) == 0 && verb[0] != "verify" && verb[0] != "recover" {
		args = append(args, "--parallel", fmt.Sprint(1+r.IntN(4)))
	}
	plan = fmt.Sprintf("%s, %.2f fail, dead at %d, changed at %d, %v", place, faults.Share, faults.DieAt.Load(),
		changeAt, args[len(verb)+1:])
	return said(place, args...), plan
}
