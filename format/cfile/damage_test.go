package cfile_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"stoa"
	"stoa/fault"
	"stoa/format"
	"stoa/format/cfile"
	"stoa/internal/kudugen"
	"stoa/region"
	"stoa/store"
)

// Bits of small real files are flipped, as many as time allows (STOA_LONG: all), and the files are cut at every byte.
// Then these must hold:
//
//   - no panic, no endless loop, no allocation of a size taken from a damaged number;
//   - every error is a placed *fault.Error whose class blames the file;
//   - with checksums: the answer is unchanged or there is an error, and Verify always reports something;
//   - without checksums: the answer changes only in the rows of the block that was hit (anywhere, if that was the
//     dictionary, which all rows share, or the footer, which has the type of the values).
//
// Which block a byte belongs to is known from the healthy file, by kudugen.Walk.

var tight = format.Limits{Page: 4 << 20, Metadata: 1 << 20}

const (
	tooMuch = 64 << 20 // bytes allocated in one attempt
	tooLong = 2 * time.Second
)

// victims returns the smallest golden files of each kind, encoding, codec, nullability and checksum setting.
func victims(t *testing.T, limit int64) []block {
	best := map[string]block{}
	var every []block
	for _, b := range readManifest(t, golden) {
		index := ""
		if b.Kind == "column" && b.Btree["val"].Levels > 0 {
			index = "+validx"
		}
		width := ""
		if b.CFile["encoding"] == "BIT_SHUFFLE" || b.CFile["encoding"] == "RLE" {
			width = b.CFile["data-type"]
		}
		if b.Size > limit {
			continue
		}
		every = append(every, b)
		key := fmt.Sprint(b.Kind, index, b.CFile["encoding"], b.CFile["compression"], b.CFile["nullable"],
			width == "bool", b.Checksums)
		if old, ok := best[key]; !ok || b.Size < old.Size {
			best[key] = b
		}
	}
	if long() {
		sort.Slice(every, func(i, j int) bool { return every[i].Size < every[j].Size })
		return every
	}
	var out []block
	for _, b := range best {
		out = append(out, b)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Size < out[j].Size })
	return out
}

func TestDamage(t *testing.T) {
	limit, budget := int64(3500), 10*time.Second
	if d, err := time.ParseDuration(os.Getenv("STOA_LONG")); err == nil && d > 0 {
		budget = d // the same files, with more time
	} else if long() {
		limit, budget = 16<<10, 1000*time.Hour
	}
	if testing.Short() {
		budget = 5 * time.Second
	}
	list := victims(t, limit)
	synthetic, err := filepath.Glob(filepath.Join(golden, "synthetic", "*_v1_*.cfile")) // v1 has no checksums at all
	if err != nil || len(synthetic) == 0 {
		t.Fatal("no files of format v1", err)
	}
	sort.Slice(synthetic, func(i, j int) bool { return size(synthetic[i]) < size(synthetic[j]) })
	for _, f := range synthetic {
		if s := size(f); s <= limit && filepath.Base(f)[:3] != "bad" {
			rel, _ := filepath.Rel(golden, f)
			list = append(list, block{File: rel, Kind: "column", Size: s})
		}
	}
	var total int64
	for _, b := range list {
		total += b.Size
	}
	sum := damageTally{}
	start := time.Now()
	var done int64
	full, thinned := 0, 0
	for _, b := range list {
		// Every bit of every file if time allows; otherwise later files get every k-th bit.
		step := 1
		if left := budget - time.Since(start); done > 0 {
			need := time.Duration(float64(time.Since(start)) / float64(done) * float64(total-done))
			step = int(max(1, need/max(left, time.Millisecond)+1))
			if need < left {
				step = 1
			}
		}
		if step == 1 {
			full++
		} else {
			thinned++
		}
		t.Run(b.File, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(golden, b.File))
			if err != nil {
				t.Fatal(err)
			}
			damage(t, b, data, step, &sum)
		})
		done += b.Size / int64(step)
		total -= b.Size - b.Size/int64(step)
	}
	t.Logf("%d files: %d with every bit flipped, %d with some; %+v", len(list), full, thinned, sum)
	if sum.Flips == 0 || sum.Cuts == 0 {
		t.Error("nothing was tried")
	}
}

// long: STOA_LONG=1 selects all golden files of at most 16 KiB; a duration selects the usual files, for that long.
func long() bool { return os.Getenv("STOA_LONG") == "1" }

func size(name string) int64 {
	st, err := os.Stat(name)
	if err != nil {
		return 0
	}
	return st.Size()
}

type damageTally struct {
	Flips, Cuts, Random              int
	Refused, Same, Changed, ByFooter int // counts of flips
}

// attempt is the result of everything that is done with one damaged file.
type attempt struct {
	answer   *answer
	err      error
	findings []region.Finding
	verified bool // Verify ran
}

// try reads data, with verify also verifies it, and with all also describes and recovers it. problems are things that
// must never happen, whatever the bytes are.
func try(data []byte, verify, all bool) (a attempt, problems []string) {
	defer func() {
		if x := recover(); x != nil {
			problems = append(problems, fmt.Sprintf("panic: %v\n%s", x, debug.Stack()))
		}
	}()
	ctx := context.Background()
	target := format.Target{Tree: store.NewMemory(map[string][]byte{"f": data}), Name: "f"}
	o := format.OpenOptions{Limits: tight}
	plain := format.OpenOptions{Limits: tight, Opts: raw.Opts}
	n := int64(len(data))
	check := func(what string, err error) {
		if err == nil {
			return
		}
		if _, bad := placed(err, "f", n); bad != nil {
			problems = append(problems, what+": "+bad.Error())
		}
	}
	start, heap := time.Now(), allocated()
	if _, err := cfile.Format.Probe(ctx, target); err != nil {
		problems = append(problems, fmt.Sprintf("Probe: %v", err))
	}
	a.answer, a.err = readAll(ctx, target, plain, nil)
	check("read", a.err)
	if (verify || all) && cfile.Format.Verify != nil { // else TestFormatIsComplete fails
		for f := range cfile.Format.Verify(ctx, target, o) {
			a.findings = append(a.findings, f)
			if f.Code == "" || f.Message == "" || f.At.Object != "f" || f.At.Off < 0 || f.At.Len < 0 || f.At.End() > n {
				problems = append(problems,
					fmt.Sprintf("Verify: finding without code, message or a place in the %d bytes: %+v", n, f))
			}
			if len(a.findings) > 100000 {
				problems = append(problems, "Verify: more than 100000 findings")
				break
			}
		}
		a.verified = true
	}
	if all && cfile.Format.Describe != nil {
		nodes := 0
		for node, err := range cfile.Format.Describe(ctx, target, format.DescribeOptions{OpenOptions: o, Pages: true}) {
			if err != nil {
				check("Describe", err)
				break
			}
			if nodes++; nodes > 1<<20 {
				problems = append(problems, "Describe: more than a million nodes")
				break
			}
			if node.Inner < 0 && (node.At.Object != "f" || node.At.Off < 0 || node.At.Len < 0 || node.At.End() > n) {
				problems = append(problems, fmt.Sprintf("Describe: %s at %v of %d bytes", node.Name, node.At, n))
			}
		}
	}
	if all {
		if cfile.Format.Recover != nil {
			r, _, err := cfile.Format.Recover(ctx, target, plain)
			check("Recover", err)
			if err == nil {
				_, err := scanAll(ctx, r, target, plain, allRows, nil)
				check("read what Recover found", err)
				r.Close()
			}
		}
		_, _ = readAll(ctx, target, format.OpenOptions{Limits: tight, NoVerify: true, Opts: raw.Opts}, nil)
	}
	if d := time.Since(start); d > tooLong {
		problems = append(problems, fmt.Sprintf("it took %v", d))
	}
	if m := allocated() - heap; m > tooMuch {
		problems = append(problems, fmt.Sprintf("it allocated %d bytes for a file of %d", m, n))
	}
	return a, problems
}

var allocs = []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}

func allocated() uint64 {
	metrics.Read(allocs)
	return allocs[0].Value.Uint64()
}

// reported reports whether Verify found more than notes.
func (a attempt) reported() bool {
	return slices.ContainsFunc(a.findings, func(f region.Finding) bool { return f.Severity >= region.Warning })
}

// TestRecover: with the indexes overwritten, all blocks with checksums are found; without checksums, rows are right or
// reported as lost. The same holds with the footer cut off and its properties passed as options.
func TestRecover(t *testing.T) {
	t.Run("indexes", func(t *testing.T) { recoverAll(t, false) })
	t.Run("footer", func(t *testing.T) { recoverAll(t, true) })
}

func recoverAll(t *testing.T, cutFooter bool) {
	if cfile.Format.Recover == nil {
		t.Skip("there is no Recover; TestFormatIsComplete fails")
	}
	ctx := context.Background()
	whole, part, none := 0, 0, 0
	for _, b := range readManifest(t, golden) {
		if b.Kind != "column" || b.Size > 40<<10 {
			continue
		}
		data, err := os.ReadFile(filepath.Join(golden, b.File))
		if err != nil {
			t.Fatal(err)
		}
		layout, err := kudugen.Walk(data)
		if err != nil {
			t.Fatal(err)
		}
		x, err := b.expect(golden)
		if err != nil {
			t.Fatal(err)
		}
		bad := bytes.Clone(data)
		for _, l := range layout.Blocks {
			if l.Kind == "posidx" || l.Kind == "validx" {
				copy(bad[l.Off:l.Off+l.Len], bytes.Repeat([]byte{0xaa}, int(l.Len)))
			}
		}
		opts := maps.Clone(raw.Opts)
		if cutFooter {
			bad = bad[:layout.Blocks[len(layout.Blocks)-1].Off]
			opts["type"] = strings.ToLower(x.col.Type)
			if x.col.Type == "decimal" {
				opts["type"] += fmt.Sprint(8 * x.col.Width())
			}
			opts["encoding"] = map[int]string{1: "plain", 2: "prefix", 4: "rle", 5: "dict",
				6: "bitshuffle"}[layout.Encoding]
			opts["compression"] = map[int]string{0: "none", 1: "none", 2: "snappy", 3: "lz4",
				4: "zlib"}[layout.Compression]
			opts["nullable"] = fmt.Sprint(layout.Nullable)
			opts["checksums"] = fmt.Sprint(layout.Checksums)
		}
		tab, err := stoa.Open(ctx, "f", stoa.OpenOptions{From: "cfile", Opts: opts, Recover: true,
			Tree: store.NewMemory(map[string][]byte{"f": bad})})
		if err != nil {
			if layout.Checksums {
				t.Errorf("%s: %v", b.File, err)
			}
			none++
			continue
		}
		if len(tab.Findings()) == 0 {
			t.Errorf("%s: the indexes are gone, and Recover finds nothing wrong", b.File)
		}
		lost := int64(0)
		got, err := collect(tab.Scan(ctx,
			stoa.ScanSpec{Damaged: stoa.NullCells, Lost: func(l region.Loss) { lost += l.Rows[1] - l.Rows[0] }}), 0)
		tab.Close()
		d := differences(got, x)
		switch {
		case err == nil && len(d) == 0:
			whole++
		case layout.Checksums:
			t.Errorf("%s: %v %v; %d rows reported as lost", b.File, err, d, lost)
		case err == nil && lost == 0:
			t.Errorf("%s: %v, but no loss is reported; findings %+v", b.File, d, tab.Findings())
		default:
			part++
		}
	}
	t.Logf("%d files recovered whole, %d with reported losses, %d not at all", whole, part, none)
	if whole == 0 {
		t.Error("nothing was recovered")
	}
}

// complaints collects the problems of one file, a few examples of each sort.
type complaints struct {
	n     map[string]int
	first map[string][]string
}

func (c *complaints) add(sort, format string, args ...any) {
	if c.n == nil {
		c.n, c.first = map[string]int{}, map[string][]string{}
	}
	if c.n[sort]++; c.n[sort] <= 3 {
		c.first[sort] = append(c.first[sort], fmt.Sprintf(format, args...))
	}
}

func (c *complaints) report(t *testing.T) {
	t.Helper()
	for s, n := range c.n {
		t.Errorf("%s: %d times", s, n)
		for _, m := range c.first[s] {
			t.Error("  ", m)
		}
	}
}

func damage(t *testing.T, b block, data []byte, step int, sum *damageTally) {
	layout, err := kudugen.Walk(data)
	if err != nil {
		t.Fatal(err)
	}
	healthy, problems := try(data, true, true)
	if len(problems) > 0 || healthy.reported() {
		t.Fatalf("the healthy file: %v %v", problems, healthy.findings)
	}
	if healthy.err != nil {
		if b.Kind != "bloom" {
			t.Fatalf("the healthy file: %v", healthy.err)
		}
		healthy.answer = nil // bloom files have no cells to read
	}
	var c complaints
	bad := bytes.Clone(data)
	for bit := 0; bit < 8*len(data); bit += step {
		off := int64(bit / 8)
		bad[off] ^= 1 << (bit % 8)
		a, problems := try(bad, layout.Checksums, bit/step%8 == 0)
		bad[off] = data[off]
		sum.Flips++
		owner := layout.Owner(off)
		where := fmt.Sprintf("bit %d of byte %d, in the %s at [%d+%d]", bit%8, off, owner.Kind, owner.Off, owner.Len)
		for _, p := range problems {
			c.add("must not happen ("+firstWords(p)+")", "%s: %s", where, p)
		}
		if layout.Checksums && a.verified && !a.reported() {
			c.add("checksums, but Verify reports nothing ("+owner.Kind+")", "%s", where)
		}
		if a.err != nil {
			sum.Refused++
			if e, bad := placed(a.err, "f", int64(len(data))); bad == nil && layout.Checksums &&
				(owner.Kind == "data" || owner.Kind == "dict") {
				if e.At.Off < owner.Off || e.At.End() > owner.Off+owner.Len || e.Class != fault.Corrupt {
					c.add("checksums, but the error is not about the block that was hit", "%s: %v", where, a.err)
				}
			}
			continue
		}
		if a.answer == nil || healthy.answer == nil {
			continue
		}
		rows, changed := difference(healthy.answer, a.answer)
		switch {
		case !changed:
			sum.Same++
			continue
		case layout.Checksums:
			c.add("checksums, but another answer ("+owner.Kind+")", "%s: %s", where, rows)
		case owner.Kind == "footer":
			sum.ByFooter++
		case owner.Kind == "dict" && rows.sameShape:
		case owner.Kind == "data" && rows.sameShape && rows.from >= owner.First && rows.to <= owner.First+owner.Rows:
		default:
			c.add("another answer outside of what was hit ("+owner.Kind+")", "%s: %s; the block has %d+%d", where,
				rows, owner.First, owner.Rows)
		}
		sum.Changed++
	}
	cutStep := step
	for n := 0; n < len(data); n += cutStep {
		a, problems := try(data[:n:n], true, n/cutStep%8 == 0)
		sum.Cuts++
		for _, p := range problems {
			c.add("must not happen, cut ("+firstWords(p)+")", "cut to %d bytes: %s", n, p)
		}
		if a.answer != nil && a.err == nil {
			c.add("a cut file was read", "cut to %d of %d bytes", n, len(data))
		}
		if a.verified && !a.reported() {
			c.add("a cut file, but Verify reports nothing", "cut to %d of %d bytes", n, len(data))
		}
	}
	random(data, layout, &c, sum)
	for _, tail := range [][]byte{{0}, {0xff}, bytes.Repeat([]byte{0}, 4096), data[len(data)-12:], data} {
		a, problems := try(append(bytes.Clone(data), tail...), true, true)
		for _, p := range problems {
			c.add("must not happen, longer ("+firstWords(p)+")", "%d bytes more: %s", len(tail), p)
		}
		if a.verified && !a.reported() {
			c.add("bytes too many, but Verify reports nothing", "%d bytes more", len(tail))
		}
	}
	c.report(t)
}

// random overwrites, moves and repeats runs of bytes and then corrects all checksums, so that the parsers are reached.
// Any answer is acceptable.
func random(data []byte, layout *kudugen.Layout, c *complaints, sum *damageTally) {
	rnd := rand.New(rand.NewPCG(7, uint64(len(data))))
	special := []uint32{0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xffffffff,
		uint32(len(data)), uint32(len(data)) - 4}
	for k := range 60 {
		bad := bytes.Clone(data)
		for range 1 + rnd.IntN(3) {
			at := rnd.IntN(len(bad))
			if rnd.IntN(2) == 0 { // the numbers are in headers and at the ends of blocks
				b := layout.Blocks[rnd.IntN(len(layout.Blocks))]
				at = int(b.Off) + rnd.IntN(min(24, int(b.Len)))
				if rnd.IntN(2) == 0 {
					at = int(b.Off+b.Len) - 1 - rnd.IntN(min(24, int(b.Len)))
				}
			}
			n := min(1+rnd.IntN(12), len(bad)-at)
			switch rnd.IntN(4) {
			case 0:
				for i := range n {
					bad[at+i] = byte(rnd.Uint32())
				}
			case 1:
				var x [4]byte
				binary.LittleEndian.PutUint32(x[:], special[rnd.IntN(len(special))])
				copy(bad[at:], x[:])
			case 2:
				from := rnd.IntN(len(bad) - n + 1)
				copy(bad[at:at+n], data[from:])
			case 3:
				copy(bad[at:], bytes.Repeat([]byte{0xff}, n))
			}
		}
		if layout.Checksums {
			for _, b := range layout.Blocks {
				x := bad[b.Off : b.Off+b.Len]
				if b.Kind == "footer" {
					binary.LittleEndian.PutUint32(x, crc32.Checksum(x[4:], castagnoli))
				} else {
					binary.LittleEndian.PutUint32(x[len(x)-4:], crc32.Checksum(x[:len(x)-4], castagnoli))
				}
			}
		}
		_, problems := try(bad, true, true)
		sum.Random++
		for _, p := range problems {
			c.add("must not happen, wild ("+firstWords(p)+")", "change %d: %s; file %x", k, p, head(bad, 2000))
		}
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func head(b []byte, n int) []byte { return b[:min(n, len(b))] }

func firstWords(s string) string {
	if len(s) > 60 {
		s = s[:60]
	}
	if i := bytes.IndexByte([]byte(s), '\n'); i > 0 {
		s = s[:i]
	}
	if i := bytes.IndexAny([]byte(s), "0123456789"); i > 0 {
		s = s[:i]
	}
	return s
}

// rowRange is the range of rows that differ.
type rowRange struct {
	from, to  int64 // first row that differs, and first after the last
	n         int
	sameShape bool // type, nullability and number of rows are the same
}

func (r rowRange) String() string {
	if !r.sameShape {
		return "another type or number of rows"
	}
	return fmt.Sprintf("%d rows differ, within %d to %d", r.n, r.from, r.to)
}

func difference(a, b *answer) (r rowRange, changed bool) {
	if a.column.Type.ID() != b.column.Type.ID() || !a.schema.Field(0).Equal(b.schema.Field(0)) ||
		len(a.cells) != len(b.cells) {
		return r, true
	}
	r.sameShape = true
	for i := range a.cells {
		if !same(a.cells[i], b.cells[i]) {
			if r.n++; r.n == 1 {
				r.from = int64(i)
			}
			r.to = int64(i) + 1
		}
	}
	return r, r.n > 0
}
