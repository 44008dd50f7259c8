package laws_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strconv"
	"testing"

	"stoa"
	"stoa/format"
	"stoa/internal/sum"
	"stoa/region"
	"stoa/store"
)

// part is a field of a file's metadata, or what a checksum covers.
type part struct {
	name     string
	off, end int64
	sum      int64 // where the checksum of this part is; it covers the rest
}

// metadata returns the fields of a file's metadata, all short, and the structures with a CRC-32C of their bytes.
func metadata(t *testing.T, name string, whole []byte) (fields, sums []part) {
	t.Helper()
	var above []region.Node
	var last region.Node
	leaf := func() {
		if n := last.At.Len; 0 < n && n <= 16 && last.Inner < 0 && last.Name != "checksum" {
			fields = append(fields, part{name: last.Name, off: last.At.Off, end: last.At.End()})
		}
	}
	for n, err := range stoa.Describe(t.Context(), name, stoa.DescribeOptions{OpenOptions: stoa.OpenOptions{
		Tree: store.NewMemory(map[string][]byte{name: whole}), Formats: everyFormat}}) {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if n.Inner >= 0 {
			continue
		}
		if n.Depth <= last.Depth {
			leaf()
		}
		above = append(above[:min(n.Depth, len(above))], n)
		if last = n; n.Name == "checksum" && n.At.Len == 4 && n.Depth > 0 {
			in := above[n.Depth-1].At
			sums = append(sums, part{off: in.Off, end: in.End(), sum: n.At.Off})
		}
	}
	leaf()
	return fields, sums
}

// forge changes a field in one of several ways, and the checksums over it to match.
func forge(r *rand.Rand, whole []byte, f part, sums []part) []byte {
	out := slices.Clone(whole)
	at := f.off + r.Int64N(f.end-f.off)
	switch r.IntN(8) {
	case 0, 1, 2:
		out[at] ^= 1 << r.IntN(8)
	case 3:
		out[at]++
	case 4:
		out[at]--
	case 5:
		clear(out[f.off:f.end])
	case 6:
		return slices.Insert(out, int(at), byte(r.IntN(256)))
	case 7:
		return slices.Delete(out, int(at), int(at)+1)
	}
	for _, s := range sums {
		if s.off > at || at >= s.end {
			continue
		}
		b := out[s.off:s.end]
		crc := sum.CRC32C(b[:s.sum-s.off], b[s.sum+4-s.off:])
		was := sum.CRC32C(whole[s.off:s.sum], whole[s.sum+4:s.end])
		if was == binary.LittleEndian.Uint32(whole[s.sum:]) {
			binary.LittleEndian.PutUint32(out[s.sum:], crc)
		}
	}
	return out
}

// TestEveryFieldOfMetadata: whatever a field of a file's metadata says, even under a checksum that fits, the verbs
// agree about the file. If verify finds it intact, recovery returns all rows, and otherwise it reports those that are
// missing, or that some may be. STOA_SEED selects other cases, STOA_ROUNDS that many of every field.
func TestEveryFieldOfMetadata(t *testing.T) {
	rounds, most := 1, 24 // fields a file
	if testing.Short() {
		most = 3
	}
	if n, err := strconv.Atoi(os.Getenv("STOA_ROUNDS")); err == nil {
		rounds, most = n, 1<<30
	}
	first, _ := strconv.ParseUint(os.Getenv("STOA_SEED"), 10, 64)
	tried := map[string]int{}
	for _, p := range singleFiles(t) {
		rows, _, _ := p.held(t, p.files).read("cat", false)
		fields, sums := metadata(t, p.at, p.files[p.at])
		r := rand.New(rand.NewPCG(first, uint64(len(fields))))
		if len(fields) > most {
			r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
			fields = fields[:most]
		}
		for _, f := range fields {
			for range rounds {
				seed := r.Uint64()
				bad := forge(rand.New(rand.NewPCG(seed, 1)), p.files[p.at], f, sums)
				if slices.Equal(bad, p.files[p.at]) {
					continue
				}
				tried[path.Ext(p.at)]++
				h := p.held(t, map[string][]byte{p.at: bad})
				finds, _ := h.judge()
				if find := h.conserves(int64(len(rows))); find != "" {
					finds = append(finds, find)
				}
				for _, find := range finds {
					t.Errorf("%s, %s at %d, seed %d: %s (%v)", p.name, f.name, f.off, seed, find, h.why)
				}
			}
		}
	}
	for _, ext := range []string{".trv", ".red", ".cfile", ".carbondata", ".parquet"} {
		if tried[ext] == 0 {
			t.Errorf("no file %s was tried", ext)
		}
	}
}

// singleFiles returns the places that are one binary file with columns: without, the number of rows is all that a file
// states, and it may state it without a checksum.
func singleFiles(t *testing.T) (out []place) {
	for _, p := range append(heldPlaces(t), keptPlaces(t, "")...) {
		ext := path.Ext(p.at)
		if len(p.files) == 1 && slices.Contains([]string{".trv", ".red", ".cfile", ".carbondata", ".parquet"}, ext) &&
			len(p.files[p.at]) < 20_000 && columns(t, &p) > 0 && p.held(t, p.files).verify(format.Deep) == fine {
			out = append(out, p)
		}
	}
	return out
}

func columns(t *testing.T, p *place) int {
	h := p.held(t, p.files)
	tab, err := stoa.Open(t.Context(), h.uri, h.opts)
	if err != nil {
		return 0
	}
	defer tab.Close()
	return tab.Schema().NumFields()
}

// conserves returns how recovery violates the law of conservation in a place that had rows and that verify may call
// intact; "" if it does not.
func (h *held) conserves(rows int64) string {
	a, reported, err := h.account(stoa.SkipRows)
	switch {
	case err != nil || a.Finding() != nil || a.Undeclared() != nil:
		return "" // the verb reports that
	case reported == 0 && h.why["verify --sums"] == "" && a.Out != rows,
		reported > 0 && a.Exact && a.Out+a.Lost < rows && h.why["recover"] == "":
		return fmt.Sprintf("recover: %d rows and %d lost of %d", a.Out, a.Lost, rows)
	}
	return ""
}
