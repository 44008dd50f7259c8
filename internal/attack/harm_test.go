package attack

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// harm is one change to a copy of a fixture: an operation, the number of a file, and the operation's arguments.
type harm struct {
	op   string
	file int
	n    [3]int64
}

func (h harm) String() string {
	return fmt.Sprintf("%s %d %d %d %d", h.op, h.file, h.n[0], h.n[1], h.n[2])
}

// parseHarms parses what String returns, several separated by semicolons.
func parseHarms(s string) (out []harm, err error) {
	for _, part := range strings.Split(s, ";") {
		w := strings.Fields(part)
		if len(w) != 5 {
			return nil, fmt.Errorf("expected a harm as WORD FILE N N N, got %q", part)
		}
		h := harm{op: w[0]}
		h.file, err = strconv.Atoi(w[1])
		for i := range h.n {
			if err == nil {
				h.n[i], err = strconv.ParseInt(w[i+2], 10, 64)
			}
		}
		if err != nil {
			return nil, err
		}
		out = append(out, h)
	}
	return out, nil
}

// bytewise are the operations on the bytes of a file b, which they may overwrite. [from, to) is the range whose bytes
// now differ, as offsets in the original file; if bytes move, it extends to the end.
var bytewise = map[string]func(b []byte, n [3]int64) (out []byte, from, to int64){
	"flip": func(b []byte, n [3]int64) ([]byte, int64, int64) { // bit n[1] of byte n[0]
		b[n[0]] ^= 1 << n[1]
		return b, n[0], n[0] + 1
	},
	"over": func(b []byte, n [3]int64) ([]byte, int64, int64) { // n[1] random bytes at n[0]
		copy(b[n[0]:n[0]+n[1]], noise(n[1], n[2]))
		return b, n[0], n[0] + n[1]
	},
	"zero": func(b []byte, n [3]int64) ([]byte, int64, int64) {
		clear(b[n[0] : n[0]+n[1]])
		return b, n[0], n[0] + n[1]
	},
	"ones": func(b []byte, n [3]int64) ([]byte, int64, int64) {
		for i := n[0]; i < n[0]+n[1]; i++ {
			b[i] = 0xff
		}
		return b, n[0], n[0] + n[1]
	},
	"cut": func(b []byte, n [3]int64) ([]byte, int64, int64) {
		return b[:n[0]:len(b)], n[0], int64(len(b))
	},
	"swap": func(b []byte, n [3]int64) ([]byte, int64, int64) { // n[2] bytes at n[0] with those at n[1]
		x := bytes.Clone(b[n[0] : n[0]+n[2]])
		copy(b[n[0]:], b[n[1]:n[1]+n[2]])
		copy(b[n[1]:], x)
		return b, min(n[0], n[1]), max(n[0], n[1]) + n[2]
	},
	"copy": func(b []byte, n [3]int64) ([]byte, int64, int64) { // n[2] bytes at n[0] over those at n[1]
		copy(b[n[1]:n[1]+n[2]], bytes.Clone(b[n[0]:n[0]+n[2]]))
		return b, n[1], n[1] + n[2]
	},
	"double": func(b []byte, n [3]int64) ([]byte, int64, int64) { // n[1] bytes at n[0] are repeated
		return insert(b, n[0], bytes.Clone(b[n[0]:n[0]+n[1]])), n[0], int64(len(b)) + n[1]
	},
	"insert": func(b []byte, n [3]int64) ([]byte, int64, int64) {
		return insert(b, n[0], noise(n[1], n[2])), n[0], int64(len(b)) + n[1]
	},
	"drop": func(b []byte, n [3]int64) ([]byte, int64, int64) { // n[1] bytes at n[0] are removed
		return append(b[:n[0]], b[n[0]+n[1]:]...), n[0], int64(len(b))
	},
}

// special are the operations on a directory; the first four replace or remove whole files.
var special = []string{"remove", "exchange", "stale", "stranger", "fifo", "device", "loop", "readme", "empty"}

func noise(n, seed int64) []byte {
	r := rand.New(rand.NewPCG(uint64(seed), 9))
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(r.Uint32())
	}
	return out
}

func insert(b []byte, at int64, x []byte) []byte {
	return append(append(bytes.Clone(b[:at]), x...), b[at:]...)
}

// touch is a range of a file's bytes.
type touch struct {
	file     string
	from, to int64
}

// wholeFile ends the touch of a file that was replaced or removed.
const wholeFile = 1 << 40

// apply applies harms to the copy of f in dir. fit is false if one of them does not fit.
func (f *fixture) apply(dir string, harms []harm) (touched []touch, fit bool, err error) {
	defer func() {
		if recover() != nil { // beyond the end of a file that an earlier harm shortened
			fit, err = false, nil
		}
	}()
	for _, h := range harms {
		if h.file >= len(f.files) {
			return nil, false, nil
		}
		name := filepath.Join(dir, f.files[h.file])
		do, ok := bytewise[h.op]
		if !ok {
			if fit, err := f.special(dir, name, h); err != nil || !fit {
				if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) { // already done, or the file is gone
					err = nil
				}
				return nil, false, err
			}
			touched = append(touched, touch{f.files[h.file], 0, wholeFile})
			if h.op == "exchange" {
				touched = append(touched, touch{f.files[h.n[0]], 0, wholeFile})
			}
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, false, nil
		}
		out, from, to := do(b, h.n)
		if err := os.WriteFile(name, out, 0o666); err != nil {
			return nil, false, err
		}
		touched = append(touched, touch{f.files[h.file], from, to})
	}
	return touched, true, nil
}

// special applies an operation on a directory.
func (f *fixture) special(dir, name string, h harm) (bool, error) {
	extra := filepath.Join(filepath.Dir(name), "part-x"+filepath.Ext(name))
	if _, err := os.Lstat(extra); err == nil && slices.Contains([]string{"fifo", "device", "loop", "empty"}, h.op) {
		return false, nil // an earlier harm created one
	}
	switch h.op {
	case "remove":
		return true, os.Remove(name)
	case "exchange":
		if int(h.n[0]) >= len(f.files) || int(h.n[0]) == h.file {
			return false, nil
		}
		o := filepath.Join(dir, f.files[h.n[0]])
		a, err := os.ReadFile(name)
		b, err2 := os.ReadFile(o)
		if err != nil || err2 != nil || bytes.Equal(a, b) {
			return false, nil
		}
		if err := os.WriteFile(name, b, 0o666); err != nil {
			return false, err
		}
		return true, os.WriteFile(o, a, 0o666)
	case "stale", "stranger":
		from := f.stale
		if h.op == "stranger" {
			from = f.other
		}
		if from == nil || h.file >= len(from.files) {
			return false, nil
		}
		b, err := os.ReadFile(filepath.Join(from.dir, from.files[h.file]))
		was, err2 := os.ReadFile(name)
		if err != nil || err2 != nil || bytes.Equal(b, was) {
			return false, nil
		}
		return true, os.WriteFile(name, b, 0o666)
	case "fifo":
		return true, syscall.Mkfifo(extra, 0o666)
	case "device":
		return true, os.Symlink("/dev/zero", extra)
	case "loop":
		return true, os.Symlink(filepath.Base(extra), extra)
	case "readme":
		return true, os.WriteFile(filepath.Join(filepath.Dir(name), "README.md"), []byte("# read me\n"), 0o666)
	case "empty":
		o, err := os.OpenFile(extra, os.O_CREATE|os.O_EXCL, 0o666) // O_EXCL: a pipe of that name would block
		if err != nil {
			return false, err
		}
		return true, o.Close()
	}
	return false, fmt.Errorf("unknown harm %q", h.op)
}

// newHarms draws one to three harms for f.
func (f *fixture) newHarms(r *rand.Rand) (out []harm) {
	for range 1 + r.IntN(4)/3 + r.IntN(8)/7 {
		h := harm{file: r.IntN(len(f.files))}
		if len(f.files) > 1 && r.IntN(3) == 0 {
			h.op = special[r.IntN(len(special))]
			h.n[0] = r.Int64N(int64(len(f.files)))
			out = append(out, h)
			continue
		}
		b, err := os.ReadFile(filepath.Join(f.dir, f.files[h.file]))
		if err != nil || len(b) == 0 {
			continue
		}
		h.op, h.n = bytesHarm(r, int64(len(b)))
		out = append(out, h)
	}
	return out
}

// bytesHarm draws an operation on a file of size bytes and its arguments. The beginning and the end are chosen more
// often, because damage there can break most.
func bytesHarm(r *rand.Rand, size int64) (string, [3]int64) {
	at := r.Int64N(size)
	switch r.IntN(6) {
	case 0:
		at = min(size-1, r.Int64N(400))
	case 1:
		at = max(0, size-1-r.Int64N(400))
	}
	some := 1 + r.Int64N(min(size-at, int64(1)<<r.IntN(12)))
	switch r.IntN(12) {
	case 0, 1, 2:
		return "flip", [3]int64{at, r.Int64N(8)}
	case 3:
		return "over", [3]int64{at, some, r.Int64N(1 << 20)}
	case 4, 5: // sectors
		sector := []int64{512, 4096}[r.IntN(2)]
		at -= at % sector
		return []string{"zero", "ones"}[r.IntN(6)/5], [3]int64{at, min(sector, size-at)}
	case 6:
		return "cut", [3]int64{at}
	case 7, 8:
		other := r.Int64N(size)
		if r.IntN(2) == 0 {
			at, other = at&^511, other&^511
			some = 512
		}
		some = min(some, size-at, size-other)
		if at < other {
			some = min(some, other-at)
		} else if other < at {
			some = min(some, at-other)
		}
		return []string{"swap", "copy"}[r.IntN(2)], [3]int64{at, other, some}
	case 9:
		return "double", [3]int64{at, some}
	case 10:
		return "insert", [3]int64{at, some, r.Int64N(1 << 20)}
	}
	return "drop", [3]int64{at, some}
}

// shorter returns harms that do less than h, for shrink to try.
func (h harm) shorter() (out []harm) {
	k := map[string]int{"over": 1, "zero": 1, "ones": 1, "swap": 2, "copy": 2, "double": 1, "insert": 1,
		"drop": 1}[h.op]
	if k == 0 || h.n[k] <= 1 {
		return nil
	}
	half := h
	half.n[k] = h.n[k] / 2
	out = append(out, half)
	if h.op == "over" || h.op == "zero" || h.op == "ones" || h.op == "drop" {
		half.n[0] += h.n[k] / 2
		half.n[k] = h.n[k] - h.n[k]/2
		out = append(out, half)
	}
	return out
}

// bounded reports whether readers of the format accept a block only if it ends where the next begins. The readers of
// Parquet and CarbonData do not require this yet for pages without checksums.
func (f *fixture) bounded() bool {
	return slices.Contains([]string{"arrow", "cfile", "redfile", "trevni"}, f.format())
}

// padded reports whether a Trevni file has grown by zeros at its end, which are read as padding. If the last column
// ends with zeros, an insertion into it shows in nothing else.
func (f *fixture) padded(dir string) bool {
	if f.format() != "trevni" {
		return false
	}
	return slices.ContainsFunc(f.files, func(name string) bool {
		was, _ := os.ReadFile(filepath.Join(f.dir, name))
		is, _ := os.ReadFile(filepath.Join(dir, name))
		return len(is) > len(was) && len(bytes.Trim(is[len(was):], "\x00")) == 0
	})
}

// likeCut reports whether a harm removes so many bytes from the blocks of a column of a Trevni file, from the last
// block or from all blocks up to the last, that the file ends before the blocks should. The descriptors before the
// blocks state their lengths, and nothing follows them, so the result looks like a file with other values that was cut
// at its end: the missing length is reported, but not which blocks differ.
func (f *fixture) likeCut(h harm) bool {
	if f.format() != "trevni" || h.op != "drop" {
		return false
	}
	info, err := os.Stat(filepath.Join(f.dir, f.files[h.file]))
	if err != nil {
		return false
	}
	end := h.n[0]
	for { // blocks follow each other up to the end; another column would begin with descriptors
		i := slices.IndexFunc(f.pages,
			func(p page) bool { return p.file == f.files[h.file] && p.from <= end && end < p.to })
		if i < 0 {
			return end > h.n[0] && end > info.Size()-h.n[1]
		}
		end = f.pages[i].to
	}
}
