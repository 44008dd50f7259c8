package redfile_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"stoa/fault"
	"stoa/format"
	"stoa/format/formattest"
	"stoa/format/redfile"
	"stoa/region"
	"stoa/store"
)

// The table that the killed writers write: row i by formula.
var killSchema = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64},
	{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "list", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true},
}, nil)

const (
	killRows   = 500 // of a row group
	killGroups = 200
)

func killBatch(from, n int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, killSchema)
	defer b.Release()
	for i := from; i < from+n; i++ {
		b.Field(0).(*array.Int64Builder).Append(int64(i)*1000003 - 7)
		if i%5 == 0 {
			b.Field(1).AppendNull()
		} else {
			b.Field(1).(*array.StringBuilder).Append(strings.Repeat(strconv.Itoa(i), 1+i%9))
		}
		l := b.Field(2).(*array.ListBuilder)
		if i%7 == 0 {
			l.AppendNull()
			continue
		}
		l.Append(true)
		for k := range i % 4 {
			l.ValueBuilder().(*array.Int32Builder).Append(int32(i * k))
		}
	}
	return b.NewRecordBatch()
}

// checkRecovered recovers f.red of a tree and holds what comes against the formula; it gives the number of rows.
func checkRecovered(t *testing.T, tree store.Tree, name string) int {
	t.Helper()
	r, found, err := redfile.Format.Recover(context.Background(), format.Target{Tree: tree, Name: name}, format.OpenOptions{})
	if err != nil {
		t.Fatalf("recover: %v", err)
	}
	defer r.Close()
	fields := r.Schema().Fields()
	told := slices.ContainsFunc(found, func(f region.Finding) bool { return f.Code == "redfile.columns.unknown" })
	if len(fields) > len(killSchema.Fields()) || len(fields) < len(killSchema.Fields()) && !told {
		t.Fatalf("recover: the schema is %v, and nothing is said of it: %+v", r.Schema(), found)
	}
	for i, f := range fields {
		if f.Name != killSchema.Field(i).Name || f.Type.ID() != killSchema.Field(i).Type.ID() {
			t.Fatalf("recover: field %d is %v", i, f)
		}
	}
	rows := 0
	for _, fields := range arrays(t, r, tree) {
		n := fields[0].Len()
		want := killBatch(rows, n)
		for c := range fields {
			if array.Equal(fields[c], want.Column(c)) {
				continue
			}
			for k := range n {
				if fields[c].IsNull(k) != want.Column(c).IsNull(k) || fields[c].ValueStr(k) != want.Column(c).ValueStr(k) {
					t.Fatalf("row %d, column %d: %s, it was %s", rows+k, c, fields[c].ValueStr(k), want.Column(c).ValueStr(k))
				}
			}
		}
		want.Release()
		rows += n
	}
	return rows
}

// TestMain is the writer that is killed, too.
func TestMain(m *testing.M) {
	if path := os.Getenv("STOA_KILLED_WRITER"); path != "" {
		killedWriter(path)
	}
	os.Exit(m.Run())
}

// killedWriter writes the table and tells each row group that is whole.
func killedWriter(path string) {
	ctx := context.Background()
	opts := map[string]string{"row-group-rows": strconv.Itoa(killRows), "page-size": "1000", "sync": "4"}
	for _, kv := range strings.Fields(os.Getenv("STOA_KILLED_OPTIONS")) {
		k, v, _ := strings.Cut(kv, "=")
		opts[k] = v
	}
	fail := func(err error) {
		if err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
	}
	sink := store.Local{}.Sink(path, nil)
	fmt.Println("begin")
	w, err := redfile.Format.Create(ctx, sink, killSchema, format.WriteOptions{Rows: -1, Opts: opts})
	fail(err)
	for g := range killGroups {
		b := killBatch(g*killRows, killRows)
		fail(w.Write(ctx, b))
		b.Release()
		fmt.Println(g + 1)
	}
	_, err = w.Close(ctx)
	fail(err)
	fmt.Println("end")
	os.Exit(0)
}

// runWriter starts a writer and kills it a while after it has told that so many row groups are whole (-1: never). It gives how
// many it had told, and its last word.
func runWriter(t *testing.T, path, opts string, at int, after time.Duration) (groups int, last string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "STOA_KILLED_WRITER="+path, "STOA_KILLED_OPTIONS="+opts)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := bufio.NewScanner(out)
	for s.Scan() {
		last = s.Text()
		if n, err := strconv.Atoi(last); err == nil {
			groups = n
		}
		if groups == at && (groups > 0 || last == "begin") {
			time.Sleep(after)
			cmd.Process.Signal(syscall.SIGKILL)
		}
	}
	io.Copy(io.Discard, out)
	cmd.Wait()
	if strings.HasPrefix(last, "failed") {
		t.Fatal(last)
	}
	return groups, last
}

// TestKilledWriter kills writers at random moments. Whatever a whole row group held is recovered, every time.
func TestKilledWriter(t *testing.T) {
	kills := 8
	if os.Getenv("STOA_LONG") != "" {
		kills = 200
	}
	dir := t.TempDir()
	runWriter(t, filepath.Join(dir, "whole.red"), "", -1, 0)
	if n := checkRecovered(t, store.Local{}, filepath.Join(dir, "whole.red")); n != killRows*killGroups {
		t.Fatalf("%d rows of a writer that was not killed", n)
	}
	r := rand.New(rand.NewPCG(1, uint64(kills)))
	histogram := map[string]int{}
	inside, recovered, more := 0, 0, 0
	for k := range kills {
		opts := []string{"", "sync=0", "generation=A", "generation=A sync=0", "sync=1", "compression=none index=false"}[k%6]
		sub := filepath.Join(dir, strconv.Itoa(k))
		if err := os.Mkdir(sub, 0o777); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(sub, "f.red")
		told, last := runWriter(t, path, opts, r.IntN(killGroups), time.Duration(r.Int64N(int64(4*time.Millisecond))))
		switch {
		case last == "end":
			histogram["was done"]++
		case last == "begin" || last == "":
			histogram["000 none was whole"]++
		default:
			histogram[fmt.Sprintf("%03d to %03d row groups were whole", told/20*20, told/20*20+19)]++
		}
		files, err := os.ReadDir(sub)
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == 0 && told == 0 {
			continue // it had written nothing
		}
		if len(files) != 1 {
			t.Fatalf("%d files are left", len(files))
		}
		left := filepath.Join(sub, files[0].Name())
		if info, err := files[0].Info(); err == nil && info.Size() > 4 && last != "end" {
			inside++
		}
		if told == 0 {
			continue // nothing is promised
		}
		n := checkRecovered(t, store.Local{}, left)
		if n < told*killRows {
			t.Errorf("kill %d (%s): %d rows are recovered, %d row groups of %d were whole", k, opts, n, told, killRows)
		}
		if n > told*killRows {
			more++
		}
		if n%killRows != 0 {
			t.Errorf("kill %d (%s): %d rows are no whole row groups", k, opts, n)
		}
		recovered++
		os.RemoveAll(sub)
	}
	t.Logf("%d writers killed, %d of them between the first and the last write; %d recoveries, %d of them of one row group more than was told", kills, inside, recovered, more)
	for _, k := range sortedKeys(histogram) {
		t.Logf("%4d  %s", histogram[k], k)
	}
	if kills == 200 && inside < 150 {
		t.Errorf("only %d of 200 kills came between the first and the last write", inside)
	}
}

func sortedKeys(m map[string]int) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	for i := range out {
		for j := i + 1; j < len(out); j++ {
			if out[j] < out[i] {
				out[i], out[j] = out[j], out[i]
			}
		}
	}
	return out
}

// TestFailingSink fails each write of a file in turn. What reached the sink before is recovered.
func TestFailingSink(t *testing.T) {
	ctx := context.Background()
	for _, opts := range []map[string]string{{"sync": "2"}, {"sync": "0", "generation": "A"}} {
		opts["row-group-rows"], opts["page-size"] = "100", "500"
		tries, rows := 0, 0
		for k := 0; ; k++ {
			keep := &keeper{left: k}
			w, err := redfile.Format.Create(ctx, keep, killSchema, format.WriteOptions{Rows: -1, Opts: opts})
			whole := 0
			for g := 0; g < 40 && err == nil; g++ {
				b := killBatch(g*100, 100)
				if err = w.Write(ctx, b); err == nil {
					whole++
				}
				b.Release()
			}
			if err == nil {
				_, err = w.Close(ctx)
			}
			if !keep.failed {
				if err != nil {
					t.Fatal(err)
				}
				break
			}
			if err == nil {
				t.Fatalf("write %d failed, and the writer did not say so", k)
			}
			if w != nil {
				w.Abort(ctx)
			}
			tries++
			if whole == 0 {
				continue
			}
			mem := store.NewMemory(map[string][]byte{"f.red": keep.bytes})
			if n := checkRecovered(t, mem, "f.red"); n < whole*100 || n%100 != 0 {
				t.Errorf("write %d failed: %d rows are recovered, %d row groups were whole", k, n, whole)
			} else {
				rows += n
			}
		}
		t.Logf("%v: failed at each of %d writes, %d rows recovered", opts, tries, rows)
		if tries < 40 {
			t.Errorf("only %d writes", tries)
		}
	}
}

// keeper is a sink of one object that keeps what was written before it failed.
type keeper struct {
	store.Sink
	bytes  []byte
	left   int
	failed bool
}

func (k *keeper) Create(context.Context, string) (store.Object, error) { return k, nil }
func (k *keeper) Commit(context.Context) error                         { return nil }
func (k *keeper) Abort(context.Context) error                          { return nil }
func (k *keeper) Close() error                                         { return nil }

func (k *keeper) Write(p []byte) (int, error) {
	if k.left--; k.left < 0 {
		k.failed = true
		n := len(p) / 2
		k.bytes = append(k.bytes, p[:n]...)
		return n, formattest.ErrSink
	}
	k.bytes = append(k.bytes, p...)
	return len(p), nil
}

// TestCutAnywhere cuts a file at every byte. Whole row groups before the cut are recovered; nothing else comes.
func TestCutAnywhere(t *testing.T) {
	ctx := context.Background()
	for _, opts := range []map[string]string{{"sync": "2"}, {"sync": "0"}, {"sync": "1", "generation": "A", "protocol": "binary"}, {"sync": "0", "generation": "A", "index": "false"}} {
		opts["row-group-rows"], opts["page-size"] = "20", "200"
		mem := store.NewMemory(nil)
		w, err := redfile.Format.Create(ctx, mem.Sink("f.red"), killSchema, format.WriteOptions{Rows: -1, Opts: opts})
		if err != nil {
			t.Fatal(err)
		}
		b := killBatch(0, 100)
		if err := w.Write(ctx, b); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Close(ctx); err != nil {
			t.Fatal(err)
		}
		whole := mem.Bytes("f.red")
		last := 0
		for cut := 5; cut <= len(whole); cut++ {
			tree := store.NewMemory(map[string][]byte{"f.red": whole[:cut]})
			tg := format.Target{Tree: tree, Name: "f.red"}
			if cut < len(whole) {
				if r, err := redfile.Format.Open(ctx, tg, format.OpenOptions{}); err == nil {
					r.Close() // it was cut just behind metadata
				} else if e := new(fault.Error); !asFault(err, &e) || e.Class != fault.Corrupt {
					t.Fatalf("cut at %d: %v", cut, err)
				}
			}
			if rowsRecovered(t, tree) < 0 {
				if last > 0 {
					t.Fatalf("cut at %d: nothing, but %d rows were recovered of a shorter file", cut, last)
				}
				continue
			}
			n := last
			if cut%97 == 0 || cut == len(whole) || last == 20 && cut%7 == 0 || rowsRecovered(t, tree) != last {
				n = checkRecovered(t, tree, "f.red")
			}
			if n < last || n%20 != 0 {
				t.Fatalf("cut at %d: %d rows, %d of a shorter file", cut, n, last)
			}
			last = n
		}
		if last != 100 {
			t.Errorf("%v: %d rows of the whole file", opts, last)
		}
	}
}

// rowsRecovered is how many rows recovery finds; -1 if nothing is left.
func rowsRecovered(t *testing.T, tree store.Tree) int {
	r, _, err := redfile.Format.Recover(context.Background(), format.Target{Tree: tree, Name: "f.red"}, format.OpenOptions{})
	if err != nil {
		return -1
	}
	defer r.Close()
	groups, err := r.RowGroups(context.Background(), format.Part{}, format.Query{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, g := range groups {
		n += int(g.Rows)
	}
	return n
}
