package write

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"

	"stoa/format/cfile/internal/block"
	"stoa/internal/enc/groupvarint"
	"stoa/internal/enc/prefix"
)

// plainStrings: u32 ordinal, u32 count, u32 position of the offsets; bytes; offsets, from the beginning of the block,
// as group-varint.
type plainStrings struct {
	limit int
	size  int // Kudu's estimate of the block
	data  []byte
	offs  []uint32
}

const plainStringsHeader = 12

func newPlainStrings(limit int) *plainStrings {
	return &plainStrings{limit: limit, size: plainStringsHeader}
}

func (b *plainStrings) put(s []byte) {
	if len(b.offs)&3 == 0 {
		b.size++ // tag of the group
	}
	off := uint32(plainStringsHeader + len(b.data))
	b.offs = append(b.offs, off)
	b.data = append(b.data, s...)
	b.size += varintGroupBytes(off) + len(s)
}

func (b *plainStrings) full() bool { return b.size > b.limit }

// get returns string i.
func (b *plainStrings) get(i uint32) []byte {
	end := len(b.data)
	if int(i)+1 < len(b.offs) {
		end = int(b.offs[i+1]) - plainStringsHeader
	}
	return b.data[b.offs[i]-plainStringsHeader : end]
}

// add copies adjacent strings in one go.
func (b *plainStrings) add(v *dense, from, to int, all bool) (int, fullness) {
	var lo, hi uint32 // range of data that is not copied yet
	n, off := to-from, uint32(plainStringsHeader+len(b.data))
	for i, s := range v.strs[from:to] {
		if s.lo != hi {
			b.data = append(b.data, v.data[lo:hi]...)
			lo = s.lo
		}
		hi = s.hi
		if len(b.offs)&3 == 0 {
			b.size++
		}
		b.offs = append(b.offs, off)
		b.size += varintGroupBytes(off) + int(s.hi-s.lo)
		off += s.hi - s.lo
		if b.size > b.limit && !all {
			n = i + 1
			break
		}
	}
	b.data = append(b.data, v.data[lo:hi]...)
	if b.full() {
		return n, fullNow
	}
	return n, spaceLeft
}

func (b *plainStrings) rest(*dense, int, int) int { return 0 }

func (b *plainStrings) Finish(dst []byte, ordinal uint32) []byte {
	dst = appendTwo(dst, ordinal, uint32(len(b.offs)))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(plainStringsHeader+len(b.data)))
	dst = append(dst, b.data...)
	return groupvarint.Append(dst, b.offs)
}

func (b *plainStrings) reset() {
	b.data, b.offs, b.size = b.data[:0], b.offs[:0], plainStringsHeader
}

// prefixStrings: a group-varint of count, ordinal, restart interval and 0; the entries; u32 offsets of the restart
// points, u32 their number. The first entry is not a restart point.
type prefixStrings struct {
	limit, interval int
	enc             *prefix.Encoder
}

func newPrefixStrings(limit, interval int) *prefixStrings {
	return &prefixStrings{limit: limit, interval: interval, enc: prefix.NewEncoder(interval)}
}

func (b *prefixStrings) add(v *dense, from, to int, all bool) (int, fullness) {
	for i, s := range v.strs[from:to] {
		b.enc.Put(v.data[s.lo:s.hi])
		if b.enc.Len() > b.limit && !all {
			return i + 1, fullNow
		}
	}
	if b.enc.Len() > b.limit {
		return to - from, fullNow
	}
	return to - from, spaceLeft
}

func (b *prefixStrings) rest(*dense, int, int) int { return 0 }

func (b *prefixStrings) Finish(dst []byte, ordinal uint32) []byte {
	at := len(dst)
	dst = groupvarint.Append4(dst, uint32(b.enc.Count), ordinal, uint32(b.interval), 0)
	head := uint32(len(dst) - at)
	dst = append(dst, b.enc.Bytes()...)
	for _, r := range b.enc.Restarts() {
		dst = binary.LittleEndian.AppendUint32(dst, head+r)
	}
	return binary.LittleEndian.AppendUint32(dst, uint32(len(b.enc.Restarts())))
}

func (b *prefixStrings) reset() { b.enc.Reset() }

// dictStrings: u32 mode, then codes or plain strings. The dictionary of the file is one plain block. When it exceeds
// the block size, the current data block ends with the run of values in which that happened, or before the next new
// string; all later blocks are plain.
type dictStrings struct {
	mode  uint32
	dict  *plainStrings
	table stringTable
	codes *shuffled
	plain *plainStrings
	buf   []uint32
}

func newDictStrings(limit int) *dictStrings {
	return &dictStrings{
		mode:  block.DictCodes,
		dict:  newPlainStrings(limit),
		codes: newShuffled(limit, 4, true),
		plain: newPlainStrings(limit),
		table: newStringTable(),
	}
}

func (b *dictStrings) add(v *dense, from, to int, all bool) (int, fullness) {
	if b.mode == block.DictPlain {
		return b.plain.add(v, from, to, all)
	}
	room := b.codes.max - b.codes.n()
	if all {
		room = to - from
	}
	b.buf = b.buf[:0]
	for _, s := range v.strs[from:min(to, from+max(room, 0))] {
		str := v.data[s.lo:s.hi]
		code, ok := b.table.find(b.dict, str)
		if !ok {
			code = b.insert(str)
			if b.dict.full() && !all {
				b.buf = append(b.buf, code)
				break
			}
		}
		b.buf = append(b.buf, code)
	}
	b.codes.buf = append(b.codes.buf, RawBytes(b.buf)...)
	if b.codes.n() >= b.codes.max || b.dict.full() {
		return len(b.buf), fullAtRunEnd
	}
	return len(b.buf), spaceLeft
}

func (b *dictStrings) insert(s []byte) uint32 {
	b.dict.put(s)
	code := uint32(len(b.dict.offs) - 1)
	b.table.insert(code)
	return code
}

// rest continues with strings that are in the dictionary. If the block is full because of its number of codes, Kudu
// looks up the next string of the run, which may add that string to the dictionary, before it notices that there is no
// room for the code. rest does the same.
func (b *dictStrings) rest(v *dense, from, to int) int {
	for i := from; i < to; i++ {
		str := v.data[v.strs[i].lo:v.strs[i].hi]
		code, ok := b.table.find(b.dict, str)
		if !ok {
			if b.dict.full() {
				return i - from
			}
			code = b.insert(str)
		}
		if b.codes.n() >= b.codes.max {
			return i - from
		}
		b.codes.buf = binary.LittleEndian.AppendUint32(b.codes.buf, code)
	}
	return to - from
}

func (b *dictStrings) Finish(dst []byte, ordinal uint32) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, b.mode)
	if b.mode == block.DictPlain {
		return b.plain.Finish(dst, ordinal)
	}
	return b.codes.Finish(dst, ordinal)
}

func (b *dictStrings) reset() {
	b.codes.reset()
	b.plain.reset()
	if b.dict.full() {
		b.mode = block.DictPlain
	}
}

// stringTable finds the code of a string in a dictionary: open addressing over hashes.
type stringTable struct {
	seed   maphash.Seed
	slots  []uint32 // code+1; 0 = free; a power of two of them
	hashes []uint64 // by code
	last   uint64   // hash of the string last passed to find
}

func newStringTable() stringTable {
	return stringTable{seed: maphash.MakeSeed(), slots: make([]uint32, 1024)}
}

func (t *stringTable) find(dict *plainStrings, s []byte) (uint32, bool) {
	h := maphash.Bytes(t.seed, s)
	t.last = h
	mask := uint64(len(t.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		c := t.slots[i]
		if c == 0 {
			return 0, false
		}
		if t.hashes[c-1] == h && bytes.Equal(dict.get(c-1), s) {
			return c - 1, true
		}
	}
}

// insert adds the string that find has just failed to find.
func (t *stringTable) insert(code uint32) {
	t.hashes = append(t.hashes, t.last)
	if 2*len(t.hashes) > len(t.slots) {
		t.slots = make([]uint32, 2*len(t.slots))
		for c := range code {
			t.place(c)
		}
	}
	t.place(code)
}

func (t *stringTable) place(code uint32) {
	mask := uint64(len(t.slots) - 1)
	i := t.hashes[code] & mask
	for t.slots[i] != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = code + 1
}
