package kudugen

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"sort"
)

// Block is a block of a CFile, or its header or footer.
type Block struct {
	Kind        string // header, data, dict, posidx, validx, footer
	Off, Len    int64  // including the checksum
	First, Rows int64  // of a data block; -1 in a bloom file
	Key         []byte // of a data block in the value index: its index key
}

// Layout is the structure of a CFile.
type Layout struct {
	Version                     int // by the footer's magic
	Type, Encoding, Compression int
	Values                      int64
	Nullable, Checksums         bool
	Levels                      map[string]int // of posidx and validx
	Meta                        map[string][]byte
	Blocks                      []Block // sorted by offset; together they cover the file
}

// Owner returns the block to which byte off belongs.
func (l *Layout) Owner(off int64) Block {
	i := sort.Search(len(l.Blocks), func(i int) bool { return l.Blocks[i].Off > off })
	return l.Blocks[i-1]
}

// Walk finds all blocks of an undamaged CFile by its indexes. It checks the checksums, that the blocks cover the file
// without gaps or overlaps, and that their rows add up.
func Walk(file []byte) (l *Layout, err error) {
	defer func() {
		if x := recover(); x != nil {
			l, err = nil, fmt.Errorf("walk: %v", x)
		}
	}()
	le := binary.LittleEndian
	w := &walker{file: file, l: Layout{Levels: map[string]int{}, Meta: map[string][]byte{}}}
	l = &w.l
	n := int64(len(file))
	footLen := int64(le.Uint32(file[n-4:]))
	magic := string(file[n-12 : n-4])
	l.Version = map[string]int{"kuducfil": 1, "kuducfl2": 2}[magic]
	if l.Version == 0 {
		return nil, fmt.Errorf("footer magic %q", magic)
	}
	root, dict := l.footer(file[n-12-footLen : n-12])
	sum := int64(0)
	if l.Checksums {
		sum = 4
	}
	w.sum = sum
	headLen := 12 + int64(le.Uint32(file[8:])) + sum
	w.headVersion = map[string]int{"kuducfil": 1, "kuducfl2": 2}[string(file[:8])]
	w.add(Block{Kind: "header", Len: headLen})
	footAt := n - 12 - footLen - sum
	w.add(Block{Kind: "footer", Off: footAt, Len: n - footAt})
	if sum > 0 {
		if le.Uint32(file[headLen-4:]) != crc(file[:headLen-4]) || le.Uint32(file[footAt:]) != crc(file[footAt+4:]) {
			return nil, fmt.Errorf("checksum of header or footer")
		}
	}
	if dict != nil {
		off, size := pointer(dict)
		w.add(Block{Kind: "dict", Off: off, Len: size})
		w.bytes(off, size)
	}
	if err := w.data(root); err != nil {
		return nil, err
	}
	at := int64(0)
	for _, b := range l.Blocks {
		if b.Off != at {
			return nil, fmt.Errorf("a gap or an overlap of blocks between %d and %d", at, b.Off)
		}
		at += b.Len
	}
	if at != n {
		return nil, fmt.Errorf("the last block ends at %d, the file at %d", at, n)
	}
	return l, nil
}

// footer parses the footer's message. root are the pointers to the roots of the indexes, dict is the pointer to the
// dictionary.
func (l *Layout) footer(foot []byte) (root map[string][]byte, dict []byte) {
	root = map[string][]byte{}
	protobuf(foot, func(field int, v uint64, b []byte) {
		switch field {
		case 1:
			l.Type = int(v)
		case 2:
			l.Encoding = int(v)
		case 3:
			l.Values = int64(v)
		case 4, 5:
			protobuf(b, func(_ int, _ uint64, b []byte) { root[map[int]string{4: "posidx", 5: "validx"}[field]] = b })
		case 6:
			l.Compression = int(v)
		case 7:
			var k string
			protobuf(b, func(field int, _ uint64, b []byte) {
				if field == 1 {
					k = string(b)
				} else {
					l.Meta[k] = b
				}
			})
		case 8:
			l.Nullable = v != 0
		case 9:
			dict = b
		case 10:
			l.Checksums = v&1 != 0
		}
	})
	return root, dict
}

// data adds the data blocks to which the indexes point.
func (w *walker) data(root map[string][]byte) error {
	data := map[int64]*Block{}
	for _, idx := range []string{"posidx", "validx"} {
		if root[idx] == nil {
			continue
		}
		off, size := pointer(root[idx])
		w.index(idx, off, size, 1, func(key []byte, off, size int64) {
			b := data[off]
			if b == nil {
				b = &Block{Kind: "data", Off: off, Len: size, First: -1, Rows: -1}
				data[off] = b
			} else if b.Len != size {
				panic(fmt.Sprintf("two sizes of the block at %d", off))
			}
			if idx == "posidx" {
				b.First = int64(binary.BigEndian.Uint32(key))
			} else {
				b.Key = key
			}
		})
	}
	var blocks []*Block
	for _, b := range data {
		blocks = append(blocks, b)
	}
	sort.Slice(blocks, func(i, j int) bool { return blocks[i].Off < blocks[j].Off })
	next := int64(0)
	for _, b := range blocks {
		raw := w.raw(w.bytes(b.Off, b.Len))
		if w.l.Values > 0 || w.l.Type != 12 {
			var first int64
			if first, b.Rows = w.l.rows(raw); first != next || b.First >= 0 && b.First != first {
				return fmt.Errorf("block at %d begins with row %d; %d by the index, %d by the blocks before", b.Off,
					first, b.First, next)
			}
			b.First = first
			next += b.Rows
		}
		w.add(*b)
	}
	if next != w.l.Values {
		return fmt.Errorf("%d rows in the blocks, %d in the footer", next, w.l.Values)
	}
	sort.Slice(w.l.Blocks, func(i, j int) bool { return w.l.Blocks[i].Off < w.l.Blocks[j].Off })
	return nil
}

// rows reads the first ordinal and the number of rows from a decompressed data block.
func (l *Layout) rows(raw []byte) (first, rows int64) {
	le := binary.LittleEndian
	rows = -1
	if l.Nullable {
		n, k := binary.Uvarint(raw)
		m, j := binary.Uvarint(raw[k:])
		rows, raw = int64(n), raw[k+j+int(m):]
	}
	enc := l.Encoding
	if enc == 5 { // dictionary: the mode says which encoding follows
		enc = map[uint32]int{1: 6, 2: 1}[le.Uint32(raw)]
		raw = raw[4:]
	}
	binaryType := l.Type == 8 || l.Type == 12 || l.Type == 19
	var n uint32
	switch {
	case enc == 6, enc == 1 && binaryType:
		first, n = int64(le.Uint32(raw)), le.Uint32(raw[4:])
	case enc == 1, enc == 4:
		first, n = int64(le.Uint32(raw[4:])), le.Uint32(raw)
	case enc == 2:
		a, b := 1+int(raw[0]>>6), 1+int(raw[0]>>4&3) // group varint: the first value's length is in the top bits
		var four [8]byte
		copy(four[:4], raw[1:1+a])
		n = le.Uint32(four[:])
		clear(four[:])
		copy(four[:4], raw[1+a:1+a+b])
		first = int64(le.Uint32(four[:]))
	default:
		panic(fmt.Sprintf("encoding %d", enc))
	}
	if rows < 0 {
		rows = int64(n)
	}
	return first, rows
}

type walker struct {
	file        []byte
	l           Layout
	sum         int64
	headVersion int
}

func (w *walker) add(b Block) { w.l.Blocks = append(w.l.Blocks, b) }

func crc(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// bytes returns a block without its checksum, after checking it.
func (w *walker) bytes(off, size int64) []byte {
	b := w.file[off : off+size]
	if w.sum == 0 {
		return b
	}
	b, s := b[:size-4], binary.LittleEndian.Uint32(b[size-4:])
	if crc(b) != s {
		panic(fmt.Sprintf("checksum of the block at %d", off))
	}
	return b
}

// raw decompresses a block.
func (w *walker) raw(b []byte) []byte {
	if w.l.Compression <= 1 {
		return b
	}
	n := binary.LittleEndian.Uint32(b)
	if w.headVersion == 1 {
		if int(n) != len(b)-8 {
			panic("compressed size")
		}
		n = binary.LittleEndian.Uint32(b[4:])
		b = b[8:]
	} else if b = b[4:]; int(n) == len(b) {
		return b // stored uncompressed
	}
	var out []byte
	var err error
	switch w.l.Compression {
	case 2:
		out = unsnappy(b, int(n))
	case 3:
		out = unlz4(b, int(n))
	case 4:
		var z io.Reader
		if z, err = zlib.NewReader(bytes.NewReader(b)); err == nil {
			out, err = io.ReadAll(z)
		}
	}
	if err != nil || len(out) != int(n) {
		panic(fmt.Sprintf("decompressed %d bytes of %d: %v", len(out), n, err))
	}
	return out
}

func (w *walker) index(kind string, off, size int64, level int, leaf func(key []byte, off, size int64)) {
	w.add(Block{Kind: kind, Off: off, Len: size})
	w.l.Levels[kind] = max(w.l.Levels[kind], level)
	raw := w.raw(w.bytes(off, size))
	pbLen := int(binary.LittleEndian.Uint32(raw[len(raw)-4:]))
	var entries, typ uint64
	protobuf(raw[len(raw)-4-pbLen:len(raw)-4], func(field int, v uint64, _ []byte) {
		if field == 1 {
			entries = v
		} else {
			typ = v
		}
	})
	table := raw[len(raw)-4-pbLen-4*int(entries):]
	for i := range int(entries) {
		b := raw[binary.LittleEndian.Uint32(table[4*i:]):]
		n, k := binary.Uvarint(b)
		key := b[k : k+int(n)]
		b = b[k+int(n):]
		o, k := binary.Uvarint(b)
		s, _ := binary.Uvarint(b[k:])
		if typ == 1 {
			w.index(kind, int64(o), int64(s), level+1, leaf)
		} else {
			leaf(bytes.Clone(key), int64(o), int64(s))
		}
	}
}

func pointer(b []byte) (off, size int64) {
	protobuf(b, func(field int, v uint64, _ []byte) {
		if field == 1 {
			off = int64(v)
		} else {
			size = int64(v)
		}
	})
	return
}

// protobuf calls f for each field of a message; b is nil unless the field has a length.
func protobuf(m []byte, f func(field int, v uint64, b []byte)) {
	for len(m) > 0 {
		tag, k := binary.Uvarint(m)
		m = m[k:]
		v, k := uint64(0), 0
		var b []byte
		switch tag & 7 {
		case 0:
			v, k = binary.Uvarint(m)
		case 1:
			v, k = binary.LittleEndian.Uint64(m), 8
		case 2:
			n, j := binary.Uvarint(m)
			b, k = m[j:j+int(n):j+int(n)], j+int(n)
		case 5:
			v, k = uint64(binary.LittleEndian.Uint32(m)), 4
		default:
			panic("protobuf")
		}
		if k <= 0 {
			panic("protobuf")
		}
		m = m[k:]
		f(int(tag>>3), v, b)
	}
}

// unlz4 decompresses an LZ4 block; it panics on damage.
func unlz4(b []byte, n int) []byte {
	out := make([]byte, 0, n)
	length := func(l int) int {
		if l == 15 {
			for {
				x := b[0]
				b = b[1:]
				l += int(x)
				if x != 255 {
					break
				}
			}
		}
		return l
	}
	for len(b) > 0 {
		token := b[0]
		b = b[1:]
		l := length(int(token >> 4))
		out, b = append(out, b[:l]...), b[l:]
		if len(b) == 0 {
			break
		}
		back := int(b[0]) | int(b[1])<<8
		b = b[2:]
		out = repeat(out, back, length(int(token&15))+4)
	}
	return out
}

// unsnappy decompresses a Snappy block; it panics on damage.
func unsnappy(b []byte, n int) []byte {
	m, k := binary.Uvarint(b)
	if m != uint64(n) {
		panic("snappy length")
	}
	b = b[k:]
	out := make([]byte, 0, n)
	for len(b) > 0 {
		tag := b[0]
		l := int(tag >> 2)
		switch tag & 3 {
		case 0:
			b = b[1:]
			if l >= 60 {
				var x [4]byte
				k := copy(x[:], b[:l-59])
				l, b = int(binary.LittleEndian.Uint32(x[:])), b[k:]
			}
			out, b = append(out, b[:l+1]...), b[l+1:]
		case 1:
			out, b = repeat(out, int(tag>>5)<<8|int(b[1]), l&7+4), b[2:]
		case 2:
			out, b = repeat(out, int(binary.LittleEndian.Uint16(b[1:])), l+1), b[3:]
		case 3:
			out, b = repeat(out, int(binary.LittleEndian.Uint32(b[1:])), l+1), b[5:]
		}
	}
	return out
}

func repeat(out []byte, back, n int) []byte {
	for range n {
		out = append(out, out[len(out)-back])
	}
	return out
}
