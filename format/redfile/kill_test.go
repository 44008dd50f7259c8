package redfile_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
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
	"stoa/internal/effort"
	"stoa/internal/scan"
	"stoa/region"
	"stoa/store"
	"stoa/vec"
)

// The sample table of these tests, which the killed writers also write: row i by formula.
var sampleSchema = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64},
	{Name: "name", Type: arrow.BinaryTypes.String, Nullable: true},
	{Name: "list", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32), Nullable: true},
}, nil)

const (
	killRows   = 500 // of a row group
	killGroups = 200
)

func sampleBatch(from, n int) arrow.RecordBatch {
	b := array.NewRecordBuilder(memory.DefaultAllocator, sampleSchema)
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

// wholeGroups returns the row groups, except the last one if it lacks columns; lacks is the set of those columns.
func wholeGroups(t *testing.T, r format.Reader) (groups []format.RowGroup, lacks map[int]bool) {
	t.Helper()
	groups, err := r.RowGroups(context.Background(), format.Part{}, format.Query{})
	if err != nil {
		t.Fatal(err)
	}
	if len(groups) == 0 {
		return nil, nil
	}
	lacks = map[int]bool{}
	for col := range r.Columns() {
		if _, err := r.Chunk(context.Background(), groups[len(groups)-1], col, vec.Range{}); err != nil {
			lacks[col] = true
		}
	}
	if len(lacks) > 0 {
		groups = groups[:len(groups)-1]
	}
	return groups, lacks
}

// checkCut compares the cells of the last row group, some of whose columns are missing, with the formula, from row on:
// cells of missing columns are null.
func checkCut(t *testing.T, r format.Reader, tree store.Tree, row int, lacks map[int]bool, found []region.Finding) {
	t.Helper()
	if !slices.ContainsFunc(found, func(f region.Finding) bool { return f.Code == "redfile.rows.lost" && f.Lost > 0 }) {
		t.Fatalf("columns %v are missing, and that is not reported: %+v", lacks, found)
	}
	objects, dicts := scan.NewObjects(tree), scan.NewDicts()
	defer objects.Close()
	defer dicts.Close()
	at := 0
	for b, err := range scan.Run(context.Background(),
		scan.Source{Reader: r, Objects: objects, Dicts: dicts, Limits: format.Limits{}.WithDefaults()},
		scan.Spec{Damaged: scan.NullCells, Batch: 1}, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if at++; at <= row {
			continue
		}
		want := sampleBatch(at-1, 1)
		for i, c := range b.Columns() {
			lost := slices.ContainsFunc(slices.Collect(maps.Keys(lacks)),
				func(col int) bool { return r.Columns()[col].Path[0] == i })
			if lost && c.IsValid(0) || !lost && c.ValueStr(0) != want.Column(i).ValueStr(0) {
				t.Fatalf("row %d of the last row group, without %v, column %d: %s, it was %s", at-1, lacks, i,
					c.ValueStr(0), want.Column(i).ValueStr(0))
			}
		}
		want.Release()
	}
	if at <= row {
		t.Fatalf("columns %v are missing: no row with the others came", lacks)
	}
}

// checkRecovered recovers f.red of a tree and compares the result with the formula; it returns the number of complete
// rows.
func checkRecovered(t *testing.T, tree store.Tree, name string) int {
	t.Helper()
	r, found, err := redfile.Format.Recover(context.Background(), format.Target{Tree: tree, Name: name},
		format.OpenOptions{})
	if err != nil {
		t.Fatalf("recover: %v", err)
	}
	defer r.Close()
	fields := r.Schema().Fields()
	reported := slices.ContainsFunc(found, func(f region.Finding) bool { return f.Code == "redfile.columns.unknown" })
	if len(fields) > len(sampleSchema.Fields()) || len(fields) < len(sampleSchema.Fields()) && !reported {
		t.Fatalf("recover: the schema is %v, and that is not reported: %+v", r.Schema(), found)
	}
	for i, f := range fields {
		if f.Name != sampleSchema.Field(i).Name || f.Type.ID() != sampleSchema.Field(i).Type.ID() {
			t.Fatalf("recover: field %d is %v", i, f)
		}
	}
	groups, lacks := wholeGroups(t, r)
	rows := 0
	for _, fields := range arraysOf(t, r, tree, groups) {
		n := fields[0].Len()
		want := sampleBatch(rows, n)
		for c := range fields {
			if array.Equal(fields[c], want.Column(c)) {
				continue
			}
			for k := range n {
				if fields[c].IsNull(k) != want.Column(c).IsNull(k) ||
					fields[c].ValueStr(k) != want.Column(c).ValueStr(k) {
					t.Fatalf("row %d, column %d: %s, it was %s", rows+k, c, fields[c].ValueStr(k),
						want.Column(c).ValueStr(k))
				}
			}
		}
		want.Release()
		rows += n
	}
	if len(lacks) > 0 {
		checkCut(t, r, tree, rows, lacks, found)
	}
	return rows
}

// TestMain is also the writer that is killed.
func TestMain(m *testing.M) {
	if path := os.Getenv("STOA_KILLED_WRITER"); path != "" {
		killedWriter(path)
	}
	os.Exit(m.Run())
}

// killedWriter writes the table and reports each complete row group.
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
	w, err := redfile.Format.Create(ctx, sink, sampleSchema, format.WriteOptions{Rows: -1, Opts: opts})
	fail(err)
	for g := range killGroups {
		b := sampleBatch(g*killRows, killRows)
		fail(w.Write(ctx, b))
		b.Release()
		fmt.Println(g + 1)
	}
	_, err = w.Close(ctx)
	fail(err)
	fmt.Println("end")
	os.Exit(0)
}

// runWriter starts a writer and kills it some time after it has reported this many complete row groups (-1: never). It
// returns how many the writer had reported, and its last output.
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

// TestKilledWriter kills writers at random times. The rows of complete row groups are always recovered.
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
		opts := []string{"", "sync=0", "generation=A", "generation=A sync=0", "sync=1",
			"compression=none index=false"}[k%6]
		sub := filepath.Join(dir, strconv.Itoa(k))
		if err := os.Mkdir(sub, 0o777); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(sub, "f.red")
		reported, last := runWriter(t, path, opts, r.IntN(killGroups),
			time.Duration(r.Int64N(int64(4*time.Millisecond))))
		switch {
		case last == "end":
			histogram["was done"]++
		case last == "begin" || last == "":
			histogram["000 none was whole"]++
		default:
			histogram[fmt.Sprintf("%03d to %03d row groups were whole", reported/20*20, reported/20*20+19)]++
		}
		files, err := os.ReadDir(sub)
		if err != nil {
			t.Fatal(err)
		}
		if len(files) == 0 && reported == 0 {
			continue // it had written nothing
		}
		if len(files) != 1 {
			t.Fatalf("%d files are left", len(files))
		}
		left := filepath.Join(sub, files[0].Name())
		if info, err := files[0].Info(); err == nil && info.Size() > 4 && last != "end" {
			inside++
		}
		if reported == 0 {
			continue // nothing is guaranteed
		}
		n := checkRecovered(t, store.Local{}, left)
		if n < reported*killRows {
			t.Errorf("kill %d (%s): %d rows are recovered, %d row groups of %d were whole", k, opts, n, reported,
				killRows)
		}
		if n > reported*killRows {
			more++
		}
		if n%killRows != 0 {
			t.Errorf("kill %d (%s): %d rows are no whole row groups", k, opts, n)
		}
		recovered++
		os.RemoveAll(sub)
	}
	t.Logf("%d writers killed, %d of them between the first and the last write; %d recoveries, %d of them of "+
		"one row group more than was reported", kills, inside, recovered, more)
	for _, k := range slices.Sorted(maps.Keys(histogram)) {
		t.Logf("%4d  %s", histogram[k], k)
	}
	if kills == 200 && inside < 150 {
		t.Errorf("only %d of 200 kills came between the first and the last write", inside)
	}
}

// TestFailingSink fails each write of a file in turn, also within a row group of several writes and within the
// metadata, and each write of the temporary file. All rows that reached the sink before are recovered.
func TestFailingSink(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		opts   map[string]string
		rows   int // of a row group
		groups int
		fewest int // minimum number of writes
	}{
		{map[string]string{"sync": "2"}, 100, 13, 13}, // each write reads back everything written so far
		{map[string]string{"sync": "0", "generation": "A"}, 100, 13, 13},
		{map[string]string{"sync": "2", "compression": "none"}, 6000, 2, 5},
		{map[string]string{"sync": "1", "generation": "A", "compression": "none", "memory": "0"}, 6000, 2, 12},
	} {
		c.opts["row-group-rows"], c.opts["page-size"] = strconv.Itoa(c.rows), strconv.Itoa(5*c.rows)
		batches := make([]arrow.RecordBatch, c.groups)
		for g := range batches {
			batches[g] = sampleBatch(g*c.rows, c.rows)
			defer batches[g].Release()
		}
		tries, within, rows := 0, 0, 0
		for k := 0; ; k++ {
			keep := &keeper{left: k}
			w, err := redfile.Format.Create(ctx, keep, sampleSchema, format.WriteOptions{Rows: -1, Opts: c.opts})
			whole := 0
			for g := 0; g < c.groups && err == nil; g++ {
				if err = w.Write(ctx, batches[g]); err == nil {
					whole++
				}
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
			n := checkRecovered(t, mem, "f.red")
			if n < whole*c.rows || n%c.rows != 0 {
				t.Errorf("%v: write %d failed: %d rows are recovered, %d row groups were whole", c.opts, k, n, whole)
			}
			rows += n
			if whole < c.groups && keep.writes > whole+1 {
				within++
			}
		}
		t.Logf("%v: failed at each of %d writes, %d of them with more writes than row groups before, %d rows recovered",
			c.opts, tries, within, rows)
		if tries < c.fewest || c.rows > 100 && within == 0 {
			t.Errorf("%v: only %d writes, %d within row groups", c.opts, tries, within)
		}
	}
}

// keeper is a sink of one object that keeps what was written before it failed. It also counts the writes of its
// temporary file.
type keeper struct {
	store.Sink
	bytes  []byte
	left   int
	writes int
	failed bool
}

func (k *keeper) Create(context.Context, string) (store.Object, error) { return k, nil }
func (k *keeper) Commit(context.Context) error                         { return nil }
func (k *keeper) Abort(context.Context) error                          { return nil }
func (k *keeper) Close() error                                         { return nil }

func (k *keeper) Scratch(context.Context) (store.Scratch, error) {
	return &keptScratch{keeper: k}, nil
}

func (k *keeper) Write(p []byte) (int, error) {
	if k.left--; k.left < 0 {
		k.failed = true
		n := len(p) / 2
		k.bytes = append(k.bytes, p[:n]...)
		return n, formattest.ErrSink
	}
	k.writes++
	k.bytes = append(k.bytes, p...)
	return len(p), nil
}

// keptScratch is the temporary file of a keeper.
type keptScratch struct {
	keeper *keeper
	b      []byte
}

func (s *keptScratch) Write(p []byte) (int, error) {
	if s.keeper.left--; s.keeper.left < 0 {
		s.keeper.failed = true
		return 0, formattest.ErrSink
	}
	s.b = append(s.b, p...)
	return len(p), nil
}

func (s *keptScratch) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(s.b).ReadAt(p, off)
}

func (s *keptScratch) Close() error { return nil }

// TestRowsOfManyBytes: the budgets of memory and of row groups also hold if there are only a few rows.
func TestRowsOfManyBytes(t *testing.T) {
	ctx := context.Background()
	sc := arrow.NewSchema([]arrow.Field{{Name: "l", Type: arrow.ListOf(arrow.BinaryTypes.String)},
		{Name: "b", Type: arrow.BinaryTypes.Binary}}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, sc)
	defer b.Release()
	for i := range 300 {
		l := b.Field(0).(*array.ListBuilder)
		l.Append(true)
		l.ValueBuilder().(*array.StringBuilder).Append(strings.Repeat(string(rune('a'+i%26)), 30_000))
		b.Field(1).(*array.BinaryBuilder).Append(make([]byte, 20_000))
	}
	batch := b.NewRecordBatch()
	defer batch.Release()
	keep := &keeper{left: 1 << 30}
	w, err := redfile.Format.Create(ctx, keep, sc,
		format.WriteOptions{Rows: -1, Opts: map[string]string{"compression": "none", "row-group-size": "1MB"}})
	if err == nil {
		err = w.Write(ctx, batch)
	}
	if err == nil {
		_, err = w.Close(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	r, err := redfile.Format.Open(ctx, target(keep.bytes), format.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	groups, err := r.RowGroups(ctx, format.Part{}, format.Query{})
	if err != nil || len(groups) < 12 || len(groups) > 16 { // 15 MB
		t.Errorf("%v, %d row groups", err, len(groups))
	}
	for _, g := range groups {
		if g.Bytes > 1_300_000 {
			t.Errorf("row group %d has %d bytes", g.Index, g.Bytes)
		}
	}
	spilled := &spilling{keeper: keeper{left: 1 << 30}}
	if w, err = redfile.Format.Create(ctx, spilled, sc,
		format.WriteOptions{Rows: -1, Opts: map[string]string{"compression": "none", "memory": "1MiB"}}); err == nil {
		err = w.Write(ctx, batch)
	}
	if err == nil {
		_, err = w.Close(ctx)
	}
	if err != nil || spilled.most == 0 || spilled.most > 2<<20 {
		t.Errorf("%v, %d bytes went to the temporary file at a time, 1 MiB is the budget", err, spilled.most)
	}
}

// spilling is a keeper that records the largest write of its temporary file.
type spilling struct {
	keeper
	most int
}

type spilledScratch struct {
	keptScratch
	s *spilling
}

func (s *spilling) Scratch(context.Context) (store.Scratch, error) {
	return &spilledScratch{keptScratch{keeper: &s.keeper}, s}, nil
}

func (s *spilledScratch) Write(p []byte) (int, error) {
	s.s.most = max(s.s.most, len(p))
	return s.keptScratch.Write(p)
}

// TestCutAnywhere truncates a file at every byte. Complete row groups before the end are recovered; nothing else is
// returned.
func TestCutAnywhere(t *testing.T) {
	ctx := context.Background()
	for _, opts := range []map[string]string{{"sync": "2"}, {"sync": "0"},
		{"sync": "1", "generation": "A", "protocol": "binary"}, {"sync": "0", "generation": "A", "index": "false"}} {
		opts["row-group-rows"], opts["page-size"] = "20", "200"
		whole := writeSample(t, 100, opts)
		last := 0
		for cut := 5; cut <= len(whole); cut++ {
			if cut%effort.Step(3, 11) != 0 && cut < len(whole) {
				continue
			}
			tree := store.NewMemory(map[string][]byte{"f.red": whole[:cut]})
			tg := format.Target{Tree: tree, Name: "f.red"}
			if cut < len(whole) {
				if r, err := redfile.Format.Open(ctx, tg, format.OpenOptions{}); err == nil {
					if r.Close(); !unfinished(tg) { // it was truncated right after metadata
						t.Fatalf("cut at %d: it opens, and that is not reported as unfinished", cut)
					}
				} else if e := new(fault.Error); !errors.As(err, &e) || e.Class != fault.Corrupt {
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

// TestCutWithinRowGroup truncates a file after each column of each row group: the present columns keep their cells.
func TestCutWithinRowGroup(t *testing.T) {
	for _, opts := range []map[string]string{{"sync": "2"}, {"sync": "0"},
		{"sync": "1", "generation": "A", "protocol": "binary"}, {"sync": "0", "generation": "A", "index": "false"}} {
		opts["row-group-rows"], opts["page-size"] = "20", "200"
		whole := writeSample(t, 60, opts)
		nodes, err := describeAll(target(whole))
		if err != nil {
			t.Fatal(err)
		}
		cuts := 0
		for _, n := range nodes {
			var group, col int
			if k, _ := fmt.Sscanf(n.Name, "row_groups[%d].columns[%d]", &group, &col); n.Depth > 0 || k < 2 ||
				col == 2 {
				continue
			}
			if group == 0 && opts["sync"] == "0" { // the number of columns is unknown
				continue
			}
			tree := store.NewMemory(map[string][]byte{"f.red": whole[:n.At.End()+3]})
			r, _, err := redfile.Format.Recover(context.Background(), format.Target{Tree: tree, Name: "f.red"},
				format.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			groups, lacks := wholeGroups(t, r)
			r.Close()
			if len(groups) != group || len(lacks) != 2-col {
				t.Errorf("%v: cut after %s: %d row groups are whole, of the last one columns %v are missing", opts,
					n.Name, len(groups), lacks)
			}
			if n := checkRecovered(t, tree, "f.red"); n != 20*group {
				t.Errorf("%v: %d whole rows of %d row groups", opts, n, group)
			}
			cuts++
		}
		if cuts < 4 {
			t.Errorf("%v: %d cuts", opts, cuts)
		}
	}
}

// unfinished reports whether opening, recovering and verifying all report that the writer did not finish, and nothing
// else.
func unfinished(tg format.Target) bool {
	ctx := context.Background()
	only := func(found []region.Finding) bool {
		return len(found) == 1 && found[0].Code == "redfile.unfinished" && found[0].Severity == region.Error
	}
	reported := func(r format.Reader, err error) bool {
		if err != nil {
			return false
		}
		defer r.Close()
		return only(r.(format.Finder).Findings())
	}
	back, lost, err := redfile.Format.Recover(ctx, tg, format.OpenOptions{})
	return reported(back, err) && len(lost) == 0 && reported(redfile.Format.Open(ctx, tg, format.OpenOptions{})) &&
		only(findings(tg))
}

// TestUnfinished truncates files after each of their metadata. Only the last is not reported, and rewriting the
// recovered rows of the others does not mark the output as continued.
func TestUnfinished(t *testing.T) {
	ctx := context.Background()
	for _, opts := range []map[string]string{{}, {"generation": "A"}, {"sync": "1"},
		{"generation": "A", "sync": "1", "protocol": "binary"}} {
		opts["row-group-rows"] = "4"
		whole := writeSample(t, 160, opts)
		reported := 0
		for cut := 0; ; {
			i := bytes.Index(whole[cut+4:], []byte("RED1"))
			if i < 0 {
				break
			}
			cut += 4 + i
			tg := target(whole[:cut+4])
			if cut+4 == len(whole) {
				if f := findings(tg); len(f) > 0 {
					t.Errorf("%v: %v of the whole file", opts, f)
				}
				break
			}
			if reported++; !unfinished(tg) {
				t.Fatalf("%v: cut at %d: it is not reported as unfinished", opts, cut+4)
			}
			back, _, err := redfile.Format.Recover(ctx, target(whole[:cut+5]), format.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, kv := range back.Meta() {
				if strings.Contains(kv.Key, "stoa.more") {
					t.Errorf("%v: cut at %d: what was recovered says that it is not finished", opts, cut+5)
				}
			}
			back.Close()
		}
		if want := map[string]int{"": 2, "1": 40}[opts["sync"]]; reported != want {
			t.Errorf("%v: %d metadata before the last, want %d", opts, reported, want)
		}
	}
}

// rowsRecovered returns how many complete rows recovery finds; -1 if nothing is left.
func rowsRecovered(t *testing.T, tree store.Tree) int {
	r, _, err := redfile.Format.Recover(context.Background(), format.Target{Tree: tree, Name: "f.red"},
		format.OpenOptions{})
	if err != nil {
		return -1
	}
	defer r.Close()
	groups, _ := wholeGroups(t, r)
	n := 0
	for _, g := range groups {
		n += int(g.Rows)
	}
	return n
}
