package workcopy_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa"
	"stoa/format"
	"stoa/store/remote"
	"stoa/store/remote/remotetest"
	_ "stoa/store/s3"
)

var (
	seed  = flag.Uint64("seed", 22, "of the random changes")
	steps = flag.Int("steps", 25, "random changes a test")
)

const table = "s3://bucket/store#db.t"

// serve serves an empty bucket, with faults that begin when the share is set.
func serve(t *testing.T, kinds ...string) (*remotetest.S3, *remotetest.Faults) {
	t.Helper()
	s := &remotetest.S3{Dir: t.TempDir()}
	if err := os.Mkdir(s.Dir+"/bucket", 0o777); err != nil {
		t.Fatal(err)
	}
	f := remotetest.NewFaults(0, *seed)
	f.Kinds = kinds
	server := httptest.NewServer(f.On(s))
	t.Cleanup(server.Close)
	for k, v := range map[string]string{"AWS_ENDPOINT_URL_S3": server.URL, "AWS_ACCESS_KEY_ID": "key",
		"AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_PROFILE": "", "TMPDIR": t.TempDir()} {
		t.Setenv(k, v)
	}
	return s, f
}

var columns = arrow.NewSchema([]arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "v", Type: arrow.BinaryTypes.String, Nullable: true}}, nil)

// model is what the table has: the text of each id. Ids occur once.
type model map[int64]string

func (m model) batch() iter.Seq2[arrow.RecordBatch, error] {
	return func(yield func(arrow.RecordBatch, error) bool) {
		b := array.NewRecordBuilder(memory.DefaultAllocator, columns)
		defer b.Release()
		for id, v := range m {
			b.Field(0).(*array.Int64Builder).Append(id)
			b.Field(1).(*array.StringBuilder).Append(v)
		}
		r := b.NewRecordBatch()
		defer r.Release()
		yield(r, nil)
	}
}

// read returns what a new reader sees, and an error if an id occurs twice.
func read(ctx context.Context) (model, error) {
	o, err := stoa.Open(ctx, table, stoa.OpenOptions{})
	if err != nil {
		return nil, err
	}
	defer o.Close()
	m := model{}
	for b, err := range o.Scan(ctx, stoa.ScanSpec{}) {
		if err != nil {
			return nil, err
		}
		for i := range int(b.NumRows()) {
			id := b.Column(0).(*array.Int64).Value(i)
			if _, twice := m[id]; twice {
				return nil, fmt.Errorf("id %d occurs twice", id)
			}
			m[id] = b.Column(1).(*array.String).Value(i)
		}
	}
	return m, nil
}

// open opens the table through a tree of its own, which waits for little.
func open(ctx context.Context, t *testing.T) *stoa.Changer {
	t.Helper()
	tree := remote.New(nil, remote.Options{Wait: time.Millisecond, Tries: 4})
	name, err := tree.Enter(ctx, table)
	if err != nil {
		t.Fatal(err)
	}
	c, err := stoa.OpenChanger(ctx, name, stoa.OpenOptions{Tree: tree})
	if err != nil {
		return nil
	}
	return c
}

func create(ctx context.Context, t *testing.T) {
	t.Helper()
	err := stoa.CreateTable(ctx, table, columns, stoa.CreateTableOptions{
		TableSpec: format.TableSpec{SortColumns: []string{"id"}}}, stoa.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// changer makes random changes, of the table and of the model.
type changer struct {
	r    *rand.Rand
	next int64
}

// change makes one change of the table, and returns what it has afterwards if there was no error.
func (x *changer) change(ctx context.Context, c *stoa.Changer, m model) (what string, out model, err error) {
	out = maps.Clone(m)
	low := x.r.Int64N(x.next + 1)
	in := func(id int64) bool { return id >= low && id < low+5 }
	where := fmt.Sprintf("id >= %d and id < %d", low, low+5)
	switch k := x.r.IntN(9); k {
	case 0, 1, 2, 3:
		rows := model{}
		for range 1 + x.r.IntN(10) {
			rows[x.next] = fmt.Sprint("v", x.next)
			x.next++
		}
		if what = "load"; k == 3 {
			what, out = "overwrite", model{}
		}
		maps.Copy(out, rows)
		_, err = c.Append(ctx, columns, rows.batch(), stoa.AppendOptions{Overwrite: k == 3})
	case 4:
		what = "delete"
		_, err = c.Delete(ctx, stoa.DeleteOptions{Where: where})
		maps.DeleteFunc(out, func(id int64, _ string) bool { return in(id) })
	case 5:
		what = "update"
		v := fmt.Sprint("u", x.r.IntN(1000))
		_, err = c.Update(ctx, stoa.UpdateOptions{Where: where, Set: map[string]*string{"v": &v}})
		for id := range out {
			if in(id) {
				out[id] = v
			}
		}
	case 6:
		what = "compact"
		_, err = c.Compact(ctx, stoa.CompactOptions{CompactOptions: format.CompactOptions{Major: true}})
	case 7:
		what = "clean"
		_, err = c.Clean(ctx, stoa.CleanOptions{OlderThan: 1})
	case 8:
		what = "merge"
		rows := model{low: "m", x.next: "m"}
		x.next++
		maps.Copy(out, rows)
		_, err = c.Merge(ctx, columns, rows.batch(), stoa.MergeOptions{Key: []string{"id"}})
	}
	return what, out, err
}

// long has all repeats: each change is dozens of requests.
var long = os.Getenv("STOA_LONG") != ""

// TestRandomChanges: after random changes at an address the table has what a map has to which the same was done. With
// faults on the way, among them answers that are lost after the store has done what it was asked for, it has what it
// had before or what it should have after, and the latter if the change was reported as made; nobody else writes, so
// none is refused as if somebody did.
func TestRandomChanges(t *testing.T) {
	shares, steps := []float64{0, 0.05, 0.3}, *steps
	if !long {
		shares, steps = []float64{0, 0.1}, min(steps, 8)
	}
	for _, share := range shares {
		t.Run(fmt.Sprint(share), func(t *testing.T) {
			ctx := t.Context()
			_, f := serve(t, "500", "503", "reset", "cut", "lost", "lost")
			create(ctx, t)
			x := &changer{r: rand.New(rand.NewPCG(*seed, uint64(share*100)))}
			m := model{}
			made, failed := 0, 0
			for i := range steps {
				f.SetShare(share)
				c := open(ctx, t)
				if c == nil {
					continue
				}
				what, want, err := x.change(ctx, c, m)
				f.SetShare(0)
				got, readErr := read(ctx)
				switch {
				case readErr != nil:
					t.Fatalf("seed %d, step %d, %s: %v\nthe change: %v", *seed, i, what, readErr, err)
				case err == nil && !maps.Equal(got, want):
					t.Fatalf("seed %d, step %d, %s: got %v, want %v", *seed, i, what, got, want)
				case err != nil && share == 0:
					t.Fatalf("seed %d, step %d, %s: %v", *seed, i, what, err)
				case err != nil && strings.Contains(err.Error(), "another program"):
					t.Fatalf("seed %d, step %d, %s: nobody else writes: %v", *seed, i, what, err)
				case err != nil && !maps.Equal(got, want) && !maps.Equal(got, m):
					t.Fatalf("seed %d, step %d, %s (%v): got %v, want %v or %v", *seed, i, what, err, got, m, want)
				case err != nil:
					failed++
				default:
					made++
				}
				m = got
			}
			t.Logf("%d changes made, %d failed, %d faults", made, failed, f.Failed.Load())
			if made == 0 || share > 0 && f.Failed.Load() == 0 {
				t.Error("nothing was tested")
			}
		})
	}
}

// TestWritersAtOnce: loads at the same time all add their rows; deletes are made, or refused because another program
// was faster.
func TestWritersAtOnce(t *testing.T) {
	ctx := t.Context()
	serve(t)
	create(ctx, t)
	writers, loads := 3, 2
	if long {
		writers, loads = 4, 5
	}
	var mu sync.Mutex
	want, refused := model{}, 0
	var work sync.WaitGroup
	for w := range writers {
		work.Go(func() {
			for i := range loads {
				rows := model{}
				for k := range 3 {
					rows[int64(w*1000+i*10+k)] = fmt.Sprint(w, "-", i)
				}
				c := open(ctx, t)
				if c == nil {
					t.Error("not opened")
					return
				}
				if _, err := c.Append(ctx, columns, rows.batch(), stoa.AppendOptions{}); err != nil {
					t.Errorf("writer %d: %v", w, err)
				}
				gone := int64(w*1000 + i*10)
				_, err := c.Delete(ctx, stoa.DeleteOptions{Where: fmt.Sprint("id = ", gone)})
				mu.Lock()
				maps.Copy(want, rows)
				switch {
				case err == nil:
					delete(want, gone)
				case strings.Contains(err.Error(), "another program has changed the table"):
					refused++
				default:
					t.Errorf("writer %d: %v", w, err)
				}
				mu.Unlock()
			}
		})
	}
	work.Wait()
	got, err := read(ctx)
	if err != nil || !maps.Equal(got, want) {
		t.Fatalf("got %v, %v; want %v", got, err, want)
	}
	t.Logf("%d rows, %d of %d deletes refused", len(got), refused, writers*loads)
}

// TestNameOfAnother: files named after the time may have the name of another writer's. The change is refused, and the
// other writer's file stays as it is.
func TestNameOfAnother(t *testing.T) {
	ctx := t.Context()
	s, _ := serve(t)
	create(ctx, t)
	m := model{1: "a", 2: "b", 3: "c"}
	if _, err := open(ctx, t).Append(ctx, columns, m.batch(), stoa.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	var taken atomic.Pointer[string] // the file that another writer made just before ours
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name := s.Dir + r.URL.Path; r.Method == http.MethodPut && strings.Contains(name, "tableupdatestatus-") &&
			taken.CompareAndSwap(nil, &name) {
			if err := os.WriteFile(name, []byte("another's"), 0o666); err != nil {
				t.Error(err)
			}
		}
		s.ServeHTTP(w, r)
	}))
	defer server.Close()
	t.Setenv("AWS_ENDPOINT_URL_S3", server.URL)
	_, err := open(ctx, t).Delete(ctx, stoa.DeleteOptions{Where: "id = 2"})
	if err == nil || !strings.Contains(err.Error(), "another program has changed the table") {
		t.Errorf("got %v, want that another program has changed the table", err)
	}
	if taken.Load() == nil {
		t.Fatal("no update status was written")
	}
	if b, err := os.ReadFile(*taken.Load()); err != nil || string(b) != "another's" {
		t.Errorf("the other writer's file: got %q, %v", b, err)
	}
	if got, err := read(ctx); err != nil || !maps.Equal(got, m) {
		t.Errorf("got %v, %v; want %v", got, err, m)
	}
}

// TestWriterDies: a writer that dies at any request leaves the table as it was, or as it should become, and the next
// writer can change it. A clean then leaves nothing of the dead one.
func TestWriterDies(t *testing.T) {
	ctx := t.Context()
	s, f := serve(t)
	create(ctx, t)
	m := model{1: "a", 2: "b", 3: "c"}
	if _, err := open(ctx, t).Append(ctx, columns, m.batch(), stoa.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	id, died := int64(10), 0
	step := int64(1)
	if !long {
		step = 13
	}
	for _, what := range []string{"load", "update"} {
		for n := int64(1); ; n += step {
			f.DieAt.Store(f.Seen() + n)
			want := maps.Clone(m)
			var err error
			if c := open(ctx, t); c == nil {
				err = errors.New("not opened")
			} else if what == "load" {
				want[id] = "new"
				_, err = c.Append(ctx, columns, model{id: "new"}.batch(), stoa.AppendOptions{})
			} else {
				v := fmt.Sprint("v", n)
				want[1] = v
				_, err = c.Update(ctx, stoa.UpdateOptions{Where: "id = 1", Set: map[string]*string{"v": &v}})
			}
			f.DieAt.Store(0)
			got, readErr := read(ctx)
			if readErr != nil || !maps.Equal(got, want) && (err == nil || !maps.Equal(got, m)) {
				t.Fatalf("%s, dead at request %d (%v): got %v, %v; want %v or %v", what, n, err, got, readErr, m, want)
			}
			m, id = got, id+1
			if err == nil {
				break
			}
			died++
		}
	}
	if _, err := open(ctx, t).Clean(ctx, stoa.CleanOptions{OlderThan: 1}); err != nil {
		t.Fatal(err)
	}
	if got, err := read(ctx); err != nil || !maps.Equal(got, m) {
		t.Fatalf("after clean: got %v, %v; want %v", got, err, m)
	}
	for _, name := range all(t, s.Dir) {
		if strings.Contains(name, "probe") {
			t.Errorf("left: %s", name)
		}
	}
	t.Logf("died at %d requests", died)
}

// TestCreatorDies: a create that dies at any request leaves a table, or nothing that stands in the way of the next
// create. A clean then leaves the table, and nothing of the dead one.
func TestCreatorDies(t *testing.T) {
	ctx := t.Context()
	died := 0
	for n, made := int64(1), false; !made; n++ {
		s, f := serve(t)
		tree := remote.New(nil, remote.Options{Wait: time.Millisecond, Tries: 2})
		name, err := tree.Enter(ctx, table)
		if err != nil {
			t.Fatal(err)
		}
		f.DieAt.Store(n)
		err = stoa.CreateTable(ctx, name, columns, stoa.CreateTableOptions{}, stoa.OpenOptions{Tree: tree})
		f.DieAt.Store(0)
		if made = err == nil; !made {
			died++
		}
		if _, readErr := read(ctx); made && readErr != nil {
			t.Fatalf("created, and not readable: %v", readErr)
		} else if readErr != nil {
			create(ctx, t)
		}
		if got, err := read(ctx); err != nil || len(got) > 0 {
			t.Fatalf("dead at request %d: then got %v, %v", n, got, err)
		}
		clean := remote.New(nil, remote.Options{})
		err = clean.Clean(ctx, "s3://bucket", time.Now().Add(time.Minute), false,
			func(remote.Leftover) error { return nil })
		if left := all(t, s.Dir); err != nil || len(left) != 1 || !strings.HasSuffix(left[0], "Metadata/schema") {
			t.Errorf("dead at request %d: left %v, %v", n, left, err)
		}
		if _, err := open(ctx, t).Append(ctx, columns, model{1: "a"}.batch(), stoa.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
		if got, err := read(ctx); err != nil || !maps.Equal(got, model{1: "a"}) {
			t.Errorf("dead at request %d: after a load got %v, %v", n, got, err)
		}
	}
	if died < 2 {
		t.Errorf("died at %d requests", died)
	}
}

// TestConditionsIgnored: a store that overwrites in spite of conditions is noticed, and nothing is left there.
func TestConditionsIgnored(t *testing.T) {
	ctx := t.Context()
	s, _ := serve(t)
	create(ctx, t)
	s.IgnoreConditions = true
	_, err := open(ctx, t).Append(ctx, columns, model{1: "a"}.batch(), stoa.AppendOptions{})
	if !errors.Is(err, remote.ErrIgnoresConditions) {
		t.Fatalf("got %v, want %v", err, remote.ErrIgnoresConditions)
	}
	var left []string
	for _, e := range all(t, s.Dir) {
		if !strings.HasSuffix(e, "Metadata/schema") && !strings.HasSuffix(e, "Metadata/tablestatus") {
			left = append(left, e)
		}
	}
	if len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	c, err := stoa.OpenChanger(ctx, table, stoa.OpenOptions{SingleWriter: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Append(ctx, columns, model{1: "a"}.batch(), stoa.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, err := read(ctx); err != nil || !maps.Equal(got, model{1: "a"}) {
		t.Errorf("got %v, %v", got, err)
	}
}

// all returns the names of all files below a directory.
func all(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
