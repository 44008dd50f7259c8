//go:build interop

package kudu

import (
	"bytes"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"stoa/interop/fuzz"
)

// A file for the judge, and its expected content.
type gridFile struct {
	name   string
	col    column
	o      fileOptions
	cells  []cell
	arr    arrow.Array // nil: the usual one for the cells
	id     uint64
	failed error
}

// inParallel runs f for all i, two at a time: the machines that run this have two cores.
func inParallel(n int, f func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range 2 {
		wg.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// judgeFiles writes all files to one shelf and has Kudu read each. For lies, a difference must be found.
func judgeFiles(t *testing.T, files []*gridFile, wrong ...*gridFile) {
	s := newFileStore(t)
	size := 0
	for _, f := range files {
		if f.arr == nil {
			f.arr = arrowOf(f.col, f.cells)
		}
		b, err := writeArray(f.col, f.o, f.arr)
		f.arr = nil
		if err != nil {
			f.failed = fmt.Errorf("our writer: %w", err)
			continue
		}
		size += len(b)
		f.id = s.put(b)
	}
	inParallel(len(files), func(i int) {
		f := files[i]
		if f.failed != nil {
			return
		}
		if len(f.cells) == 0 {
			f.failed = s.empty(f)
			return
		}
		d, err := s.dump(f.id)
		if err != nil {
			f.failed = fmt.Errorf("Kudu refuses it: %w", err)
			return
		}
		if f.failed = d.compare(f.col, f.cells); f.failed == nil {
			f.failed = d.facts(f.facts())
		}
	})
	values, bad := 0, 0
	for _, f := range files {
		values += len(f.cells)
		if slices.Contains(wrong, f) {
			if f.failed == nil {
				t.Errorf("%s: it is not noticed", f.name)
			} else {
				t.Logf("%s: noticed: %v", f.name, f.failed)
			}
			continue
		}
		if f.failed != nil {
			if bad++; bad <= 60 {
				t.Errorf("%s: %v", f.name, f.failed)
			}
		}
	}
	if len(wrong) > 0 {
		return
	}
	t.Logf("COUNT %s: %d of %d files read by Kudu as meant (%d values, %d bytes)", t.Name(), len(files)-bad,
		len(files), values, size)
}

// empty: Kudu writes no file without rows. It reads the footer of one, and its dump then reports that the index
// has no first entry.
func (s *fileStore) empty(f *gridFile) error {
	d, err := s.dump(f.id, "--noprint_rows")
	if err != nil {
		return fmt.Errorf("Kudu refuses it: %w", err)
	}
	if err := d.facts(f.facts()); err != nil {
		return err
	}
	if d, err := s.dump(f.id); err == nil || !strings.Contains(err.Error(), "Not found: 0: invalid index") {
		return fmt.Errorf("of a file without rows Kudu says %v %v", d, err)
	}
	return nil
}

func (f *gridFile) facts() map[string]string {
	features := "1"
	if f.o.NoChecksums {
		features = "0"
	}
	if f.o.Version == 1 {
		features = ""
	}
	return map[string]string{
		"data_type": f.col.Type, "encoding": f.col.Enc, "compression": f.col.Comp,
		"num_values":       strconv.Itoa(len(f.cells)),
		"is_type_nullable": strconv.FormatBool(f.col.Nullable), "incompatible_features": features,
	}
}

var versions = []struct {
	name string
	o    fileOptions
}{{"v1", fileOptions{Version: 1}}, {"v2-nosum", fileOptions{Version: 2, NoChecksums: true}},
	{"v2", fileOptions{Version: 2}}}

// TestGrid is type × encoding × compression × nullability × version and checksums, 2 600 rows each, with small
// blocks.
func TestGrid(t *testing.T) {
	t.Parallel()
	var files []*gridFile
	for ci, c := range gridColumns() {
		for _, comp := range []string{"NO_COMPRESSION", "LZ4", "SNAPPY", "ZLIB"} {
			for _, nullable := range []bool{false, true} {
				for _, v := range versions {
					c.Comp, c.Nullable = comp, nullable
					i := len(files)
					c.BlockSize = []int{256, 512, 1024, 4096, 700}[i%5]
					o := v.o
					o.IndexBlock = []int{0, 128, 512, 0, 1024, 64, 0}[i%7]
					o.Restarts = []int{0, 1, 0, 3, 0, 100, 0, 16, 0}[i%9]
					files = append(files, &gridFile{
						name: fmt.Sprintf("%s/%s/%s/nullable=%v/%s", c.Type, c.Enc, comp, nullable, v.name), col: c,
						o: o, cells: values(c, 100*ci+i%3, 2600),
					})
				}
			}
		}
	}
	judgeFiles(t, files)
}

// TestSmallFiles: files with little or no content.
func TestSmallFiles(t *testing.T) {
	t.Parallel()
	var files []*gridFile
	for ci, c := range gridColumns() {
		for vi, v := range versions {
			for _, n := range []int{0, 1, 7, 9} {
				for _, nullable := range []bool{false, true} {
					c.Nullable, c.Comp = nullable, []string{"NO_COMPRESSION", "LZ4", "SNAPPY", "ZLIB"}[(ci+vi+n)%4]
					if (ci+n)%3 == vi && (n%2 == 1) == nullable { // a part of the grid is enough
						files = append(files,
							&gridFile{name: fmt.Sprintf("%s/%s/%s/%s/nullable=%v/rows=%d", c.Type, c.Enc, c.Comp,
								v.name, nullable, n), col: c, o: v.o, cells: values(c, ci, n)})
					}
					if nullable && (n == 1 || n == 9) && ci%3 == vi {
						files = append(files,
							&gridFile{name: fmt.Sprintf("%s/%s/%s/%s/nulls=%d", c.Type, c.Enc, c.Comp, v.name, n),
								col: c, o: v.o, cells: make([]cell, n)})
					}
				}
			}
		}
	}
	judgeFiles(t, files)
}

// TestLargeFiles: default sizes of blocks and index blocks, or index trees of three levels and more.
func TestLargeFiles(t *testing.T) {
	t.Parallel()
	var files []*gridFile
	for ci, c := range gridColumns() {
		c.Nullable, c.Comp = ci%2 == 1, []string{"NO_COMPRESSION", "LZ4", "SNAPPY", "ZLIB"}[ci%4]
		v := versions[ci%3]
		files = append(files, &gridFile{name: fmt.Sprintf("%s/%s/%s/%s/defaults", c.Type, c.Enc, c.Comp, v.name),
			col: c, o: v.o, cells: values(c, ci, 60000)})
		c.BlockSize = 128
		o := v.o
		o.IndexBlock = 64
		files = append(files, &gridFile{name: fmt.Sprintf("%s/%s/%s/%s/deep", c.Type, c.Enc, c.Comp, v.name),
			col: c, o: o, cells: values(c, ci, 9000)})
	}
	// NULLs do not count towards a block's size: a block may cover very many rows.
	c := column{Type: "INT32", Enc: "BIT_SHUFFLE", Comp: "LZ4", Nullable: true, BlockSize: 256}
	sparse := make([]cell, 300000)
	for i := 0; i < len(sparse); i += 1009 {
		sparse[i] = int64(i)
	}
	files = append(files, &gridFile{name: "sparse", col: c, o: versions[2].o, cells: sparse})
	// A dictionary that overflows at once, one that never does, one that does half-way.
	for i, distinct := range []int{2, 300, 5000, 30000} {
		c := column{Type: "STRING", Enc: "DICT_ENCODING", Comp: "NO_COMPRESSION", Nullable: i%2 == 1,
			BlockSize: []int{0, 4096, 0, 16384}[i]}
		cells := make([]cell, 30000)
		for r := range cells {
			cells[r] = fmt.Appendf(nil, "word-%d", hash(1, r)%uint64(min(distinct, 1+r/3)))
		}
		files = append(files, &gridFile{name: fmt.Sprintf("dictionary of %d", distinct), col: c,
			o: versions[1+i%2].o, cells: cells})
	}
	// Values that are larger than any block.
	for i, typ := range []string{"STRING", "BINARY"} {
		for j, enc := range varied {
			cells := make([]cell, 40)
			for r := range cells {
				cells[r] = bytes.Repeat(fmt.Appendf(nil, "%d/%d;", r/3, hash(3, r/3)), r%5*r%7*9000)
			}
			cells[7] = nil
			c := column{Type: typ, Enc: enc, Comp: []string{"NO_COMPRESSION", "LZ4", "SNAPPY", "ZLIB"}[(i+j)%4],
				Nullable: true, BlockSize: 4096}
			files = append(files, &gridFile{name: fmt.Sprintf("huge %s %s", typ, enc), col: c,
				o: versions[(i+j)%3].o, cells: cells})
		}
	}
	judgeFiles(t, files)
}

// TestRandomFiles: 200 files with random layout, NULLs and values. STOA_INTEROP_SEED draws others.
func TestRandomFiles(t *testing.T) {
	t.Parallel()
	seed, _ := strconv.ParseUint(os.Getenv("STOA_INTEROP_SEED"), 10, 64)
	lot := rand.New(rand.NewPCG(1, seed))
	var files []*gridFile
	for i := range 200 {
		files = append(files, randomFile(lot, i))
	}
	judgeFiles(t, files)
}

// TestFuzz: such files, one per seed, for as long as STOA_FUZZ says. In each round a value of one is changed on
// purpose.
func TestFuzz(t *testing.T) {
	fuzz.Run(t, "kudu", 60, func(t *testing.T, first uint64) (cells int) {
		var files []*gridFile
		for seed := first; seed < first+60; seed++ {
			lot := rand.New(rand.NewPCG(2, seed))
			f := randomFile(lot, int(seed))
			if k := lot.IntN(len(f.cells)); lot.IntN(2) == 0 { // a slice of a longer array
				long := arrowOf(f.col, slices.Concat(f.cells[:k], f.cells, f.cells[k:]))
				f.arr = array.NewSlice(long, int64(k), int64(k+len(f.cells)))
			}
			f.name = fmt.Sprintf("seed %d: %s", seed, f.name)
			cells += len(f.cells)
			files = append(files, f)
		}
		lie := *files[0]
		for seed := first; len(lie.cells) == 0 || lie.col.Type != "INT32" || lie.cells[0] == nil; seed += 1 << 32 {
			lie = *randomFile(rand.New(rand.NewPCG(2, seed)), int(first))
		}
		lie.arr, lie.name = arrowOf(lie.col, lie.cells), "changed on purpose"
		lie.cells = append([]cell{lie.cells[0].(int64) ^ 1}, lie.cells[1:]...)
		judgeFiles(t, append(files, &lie), &lie)
		return cells
	})
}

// randomFile draws a file. Its values are those of formula i.
func randomFile(lot *rand.Rand, i int) *gridFile {
	pick := func(of ...int) int { return of[lot.IntN(len(of))] }
	c := gridColumns()[lot.IntN(len(gridColumns()))]
	c.Comp = []string{"NO_COMPRESSION", "LZ4", "SNAPPY", "ZLIB"}[lot.IntN(4)]
	c.BlockSize = pick(0, 512, 513, 600, 1000, 2048, 8192, 60000)
	c.Nullable = lot.IntN(3) > 0
	o := versions[lot.IntN(3)].o
	o.IndexBlock, o.Restarts = pick(0, 0, 32, 100, 1000), pick(0, 0, 1, 2, 5, 31)
	o.Piece = pick(0, 1, 7, 99, 100, 101, 1000)
	n := pick(1, 5, 99, 100, 101, 128, 300, 1023, 4000, 9001)
	nulls := pick(0, 1, 2, 10, 50, 90, 99) // percent, or runs
	run := pick(1, 1, 2, 8, 63, 64, 100, 101, 500)
	distinct := pick(1, 2, 3, 17, 300, 1<<30)
	repeat := pick(1, 1, 2, 7, 8, 9, 64, 500)
	cells := make([]cell, n)
	for r := range cells {
		if c.Nullable && int(hash(2*i, r/run)%100) < nulls {
			continue
		}
		h := hash(2*i+1, r/repeat)
		cells[r] = fromHash(c, hash(i, int(h%uint64(distinct))), h%19 == 0)
		if distinct == 300 && h%5 == 0 {
			cells[r] = ramp(c, r)
		}
	}
	name := fmt.Sprintf("random %d: %+v %+v rows %d nulls %d%% in runs of %d, %d distinct, repeated %d times",
		i, c, o, n, nulls, run, distinct, repeat)
	return &gridFile{name: name, col: c, o: o, cells: cells}
}

// TestOtherArrays: for some types the writer takes several kinds of Arrow arrays.
func TestOtherArrays(t *testing.T) {
	t.Parallel()
	var files []*gridFile
	add := func(name string, c column, cells []cell, arr arrow.Array) {
		c.Comp = []string{"NO_COMPRESSION", "LZ4", "SNAPPY", "ZLIB"}[len(files)%4]
		if c.BlockSize == 0 {
			c.BlockSize = 1024
		}
		files = append(files, &gridFile{name: name, col: c, o: versions[len(files)%3].o, cells: cells, arr: arr})
	}
	for _, nullable := range []bool{false, true} {
		for _, c := range gridColumns() {
			c.Nullable = nullable
			cells := values(c, 77, 2100)
			usual := arrowOf(c, cells)
			kinds := map[string][]arrow.DataType{
				"STRING": {arrow.BinaryTypes.LargeString}, "VARCHAR": {arrow.BinaryTypes.LargeString},
				"BINARY": {arrow.BinaryTypes.LargeBinary},
				"DECIMAL32": {&arrow.Decimal128Type{Precision: 9, Scale: 2},
					&arrow.Decimal64Type{Precision: 9, Scale: 2}},
				"DECIMAL64": {&arrow.Decimal128Type{Precision: 18, Scale: 2}},
				"INT64":     {arrow.FixedWidthTypes.Duration_us, arrow.FixedWidthTypes.Time64ns},
				"INT32":     {arrow.FixedWidthTypes.Time32ms},
			}[c.Type]
			for _, kind := range kinds {
				add(fmt.Sprintf("%s/%s of %s nullable=%v", c.Type, c.Enc, kind, nullable), c, cells,
					otherArray(kind, cells))
			}
			if len(cells) > 0 && (c.Type == "STRING" || c.Type == "BINARY" || c.Type == "INT64" || c.Type == "DATE") {
				add(fmt.Sprintf("%s/%s of a dictionary nullable=%v", c.Type, c.Enc, nullable), c, cells,
					dictionaryOf(c, cells, usual.DataType()))
			}
		}
		// Units that are converted to Kudu's.
		for unit, factor := range map[arrow.TimeUnit]int64{arrow.Second: 1e6, arrow.Millisecond: 1e3,
			arrow.Nanosecond: 0} {
			c := column{Type: "UNIXTIME_MICROS", Enc: "BIT_SHUFFLE", Nullable: nullable}
			cells, raw := make([]cell, 1500), make([]cell, 1500)
			for r := range cells {
				x := int64(hash(9, r)) >> 24
				switch {
				case nullable && r%7 == 3:
				case factor == 0:
					cells[r], raw[r] = x, x*1000
				default:
					cells[r], raw[r] = x*factor, x
				}
			}
			add(fmt.Sprintf("timestamps in %s nullable=%v", unit, nullable), c, cells,
				otherArray(&arrow.TimestampType{Unit: unit, TimeZone: "UTC"}, raw))
		}
		c := column{Type: "DATE", Enc: "RLE", Nullable: nullable}
		cells, raw := values(c, 5, 1500), make([]cell, 1500)
		for r, v := range cells {
			if v != nil {
				raw[r] = v.(int64) * 86400000
			}
		}
		add(fmt.Sprintf("date64 nullable=%v", nullable), c, cells, otherArray(arrow.FixedWidthTypes.Date64, raw))
	}
	judgeFiles(t, files)
}

// TestSideFiles: ad-hoc indexes and delta files are read by their value index; of a bloom file the dump shows
// the footer only.
func TestSideFiles(t *testing.T) {
	t.Parallel()
	s := newFileStore(t)
	var jobs []func() bool
	check := func(name string, file []byte, err error, want []cell, facts map[string]string, stat *stats,
		flags ...string) {
		if err != nil {
			t.Errorf("%s: our writer: %v", name, err)
			return
		}
		id := s.put(file)
		jobs = append(jobs, func() bool {
			d, err := s.dump(id, flags...)
			if err == nil && len(flags) == 0 {
				err = d.compare(column{Type: "BINARY"}, want)
			}
			if err == nil {
				err = d.facts(facts)
			}
			if err == nil && stat != nil {
				var got stats
				if got, err = parseStats(d.Footer["metadata.deltafilestats"]); err == nil &&
					!reflect.DeepEqual(got, *stat) {
					err = fmt.Errorf("statistics %v, meant %v", got, *stat)
				}
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			return err == nil
		})
	}
	asCells := func(keys [][]byte) []cell {
		out := make([]cell, len(keys))
		for i, k := range keys {
			out[i] = k
		}
		return out
	}
	for _, v := range versions {
		features := map[string]string{"v1": "", "v2-nosum": "0", "v2": "1"}[v.name]
		for _, n := range []int{1, 300, 4000} {
			for _, ib := range []int{0, 256} {
				if n == 1 && ib != 0 {
					continue
				}
				o := v.o
				o.IndexBlock = ib
				x := keyTables("", n, column{Name: "v", Type: "BOOL"})
				for _, tab := range []table{x[len(x)-3], x[len(x)-2], x[len(x)-1]} {
					keys := tab.encodedKeys(tab.b)
					b, err := writeAdhocIndex(keys, o)
					check(fmt.Sprintf("ad-hoc index %s %s n=%d index block %d", tab.name, v.name, n, ib), b, err,
						asCells(keys), map[string]string{
							"data_type": "BINARY", "encoding": "PREFIX_ENCODING", "compression": "LZ4",
							"num_values": strconv.Itoa(len(keys)), "posidx_info": "", "incompatible_features": features,
							"is_type_nullable": "false", "metadata.min_key": metadata(keys[0]),
							"metadata.max_key": metadata(keys[len(keys)-1]),
						}, nil)
					b, err = writeBloom(keys, o)
					check(fmt.Sprintf("bloom %s %s n=%d", tab.name, v.name, n), b, err, nil, map[string]string{
						"data_type": "BINARY", "encoding": "PLAIN_ENCODING", "compression": "NO_COMPRESSION",
						"num_values": "0", "posidx_info": "", "incompatible_features": features,
					}, nil, "--noprint_rows")
				}
				for _, undo := range []bool{false, true} {
					entries := someChanges(n, undo)
					want := make([]cell, len(entries))
					for i, e := range entries {
						want[i] = e.encode()
					}
					stat := statsOf(entries)
					b, err := writeDelta(undo, entries, o)
					check(fmt.Sprintf("deltas undo=%v %s n=%d index block %d", undo, v.name, n, ib), b, err, want,
						map[string]string{
							"data_type": "BINARY", "encoding": "PLAIN_ENCODING", "compression": "LZ4",
							"num_values": strconv.Itoa(len(want)), "posidx_info": "", "incompatible_features": features,
						}, &stat)
				}
			}
		}
	}
	good := make([]int, len(jobs))
	inParallel(len(jobs), func(i int) {
		if jobs[i]() {
			good[i] = 1
		}
	})
	sum := 0
	for _, g := range good {
		sum += g
	}
	t.Logf("COUNT %s: %d of %d ad-hoc indexes, bloom files and delta files read by Kudu as meant", t.Name(), sum,
		len(jobs))
}

func someChanges(n int, undo bool) []change {
	var out []change
	for r := range n {
		var of []change
		for j := range 1 + hash(1, r)%3 {
			c := change{Row: uint64(r * r), Time: 7353330593719615488 + 4096*(hash(2, r)%100000) + j,
				Kind: byte(1 + (hash(3, r)+j)%3)}
			if c.Kind != 2 {
				for k, col := range deltaColumns()[1:] {
					if hash(k, r)%3 == 0 {
						continue
					}
					v := value(col, k, r)
					x := colChange{ID: 10 + 100*k, Null: v == nil}
					if v != nil {
						x.Raw = stored(col.Type, v)
					}
					c.Cols = append(c.Cols, x)
				}
				if len(c.Cols) == 0 {
					c.Cols = []colChange{{ID: 10, Raw: []byte{1, 2, 3, 4}}}
				}
			}
			of = append(of, c)
		}
		if undo {
			slices.Reverse(of)
		}
		out = append(out, of...)
	}
	return out
}

// TestHarnessNoticesBadFiles: the harness rejects files that are not as intended.
func TestHarnessNoticesBadFiles(t *testing.T) {
	t.Parallel()
	s := newFileStore(t)
	var tried atomic.Int32
	columns := gridColumns()
	inParallel(len(columns), func(i int) {
		c := columns[i]
		c.BlockSize, c.Comp, c.Nullable = 512, []string{"NO_COMPRESSION", "LZ4", "SNAPPY", "ZLIB"}[i%4], i%2 == 0
		cells := values(c, i, 1500)
		b, err := writeColumn(c, fileOptions{Version: 2}, cells)
		if err != nil {
			t.Errorf("%v: %v", c, err)
			return
		}
		d, err := s.dump(s.put(b))
		if err != nil {
			t.Errorf("%v: %v", c, err)
			return
		}
		if err := d.compare(c, cells); err != nil {
			t.Errorf("%v: %v", c, err)
		}
		// another value was expected
		other := slices.Clone(cells)
		switch v := other[700].(type) {
		case bool:
			other[700] = !v
		case *big.Int:
			other[700] = new(big.Int).Add(v, big.NewInt(1))
		case []byte:
			other[700] = append(bytes.Clone(v), 'x')
		case nil:
			other[700] = fromHash(c, 77, false)
		default:
			other[700] = fromHash(c, 4711, false)
		}
		if dumped(c.Type, other[700]) != dumped(c.Type, cells[700]) && d.compare(c, other) == nil {
			t.Errorf("%v: a changed value went unnoticed", c)
		}
		if d.compare(c, cells[:1499]) == nil || d.compare(c, append(slices.Clone(cells), cells[0])) == nil {
			t.Errorf("%v: a missing value went unnoticed", c)
		}
		// a flipped bit, a cut file
		for _, at := range []int{20, len(b) / 2, len(b) * 2 / 3} {
			bad := bytes.Clone(b)
			bad[at] ^= 4
			if _, err := s.dump(s.put(bad)); err == nil {
				t.Errorf("%v: Kudu reads the file with bit 2 of byte %d flipped", c, at)
			} else if !strings.Contains(strings.ToLower(err.Error()), "checksum") && at > 100 {
				t.Logf("%v: byte %d: %v", c, at, err)
			}
			tried.Add(1)
		}
		if _, err := s.dump(s.put(b[:len(b)-100])); err == nil {
			t.Errorf("%v: Kudu reads a cut file", c)
		}
	})
	t.Logf("COUNT %s: %d files with a flipped bit refused", t.Name(), tried.Load())
}
