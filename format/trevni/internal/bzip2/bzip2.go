package bzip2

import (
	"container/heap"
	"math/bits"
	"slices"
)

// A bzip2 compressor for blocks of columns. Go's library only decompresses, and no maintained library does both
// (docs/decisions/0006-bzip2.md). It is simple rather than fast: one Huffman table, rotations sorted by doubling.

// maxBzip2 is the number of bytes in a bzip2 block at level 9; the reference compressor also leaves 19 bytes free.
const maxBzip2 = 900_000 - 19

// bitWriter writes the most significant bit first.
type bitWriter struct {
	b    []byte
	acc  uint64
	have uint
}

func (w *bitWriter) put(n uint, v uint64) {
	for n > 32 {
		n -= 32
		w.put(32, v>>n&(1<<32-1))
	}
	w.acc = w.acc<<n | v&(1<<n-1)
	for w.have += n; w.have >= 8; w.have -= 8 {
		w.b = append(w.b, byte(w.acc>>(w.have-8)))
	}
}

func (w *bitWriter) end() {
	if w.have > 0 {
		w.put(8-w.have, 0)
	}
}

// bzip2CRC is the table of CRC-32 with the bits of each byte processed from the most significant one.
var bzip2CRC = func() (t [256]uint32) {
	for i := range t {
		c := uint32(i) << 24
		for range 8 {
			c = c<<1 ^ uint32(int32(c)>>31)&0x04c11db7
		}
		t[i] = c
	}
	return t
}()

// Append appends src to dst as a bzip2 stream.
func Append(dst, src []byte) []byte {
	w := &bitWriter{b: append(dst, "BZh9"...)}
	sum := uint32(0)
	for len(src) > 0 {
		runs, used, crc := firstRuns(src)
		src = src[used:]
		sum = bits.RotateLeft32(sum, 1) ^ crc
		w.put(48, 0x314159265359)
		w.put(32, uint64(crc))
		w.put(1, 0)
		w.block(runs)
	}
	w.put(48, 0x177245385090)
	w.put(32, uint64(sum))
	w.end()
	return w.b
}

// firstRuns encodes each run of 4 to 255 equal bytes as four of them and a count of the rest, until a block is full. It
// reads used bytes of src, whose checksum is crc.
func firstRuns(src []byte) (out []byte, used int, crc uint32) {
	crc = ^uint32(0)
	for used < len(src) && len(out) < maxBzip2-5 {
		b, n := src[used], 1
		for n < 255 && used+n < len(src) && src[used+n] == b {
			n++
		}
		for range n {
			crc = crc<<8 ^ bzip2CRC[byte(crc>>24)^b]
		}
		for range min(n, 4) {
			out = append(out, b)
		}
		if n >= 4 {
			out = append(out, byte(n-4))
		}
		used += n
	}
	return out, used, ^crc
}

// rotations sorts the rotations of b by their first byte, then by twice as many bytes each time, until all differ or
// all bytes were compared.
func rotations(b []byte) []int32 {
	n := len(b)
	order, rank, next, spare := make([]int32, n), make([]int32, n), make([]int32, n), make([]int32, n)
	var count [257]int32
	for _, x := range b {
		count[int(x)+1]++
	}
	for i := range 256 {
		count[i+1] += count[i]
	}
	at := count
	for i, x := range b {
		order[at[x]] = int32(i)
		at[x]++
		rank[i] = count[x]
	}
	first := make([]int32, n) // where the rotations of each rank begin
	for h := 1; h < n; h *= 2 {
		// In the order of the rotation h bytes later, each rotation goes to the next position of its rank.
		for i := range n {
			first[rank[order[i]]] = rank[order[i]]
		}
		for i := range n {
			j := order[i] - int32(h%n)
			if j < 0 {
				j += int32(n)
			}
			spare[i] = j
		}
		for _, j := range spare {
			r := rank[j]
			order[first[r]] = j
			first[r]++
		}
		distinct := true
		for i := range n {
			if i > 0 && rank[order[i]] == rank[order[i-1]] && rank[(int(order[i])+h)%n] == rank[(int(order[i-1])+h)%n] {
				next[order[i]] = next[order[i-1]]
				distinct = false
			} else {
				next[order[i]] = int32(i)
			}
		}
		rank, next = next, rank
		if distinct {
			break
		}
	}
	return order
}

// block writes the part of a block after its checksum.
func (w *bitWriter) block(b []byte) {
	order := rotations(b)
	last := make([]byte, len(b))
	for i, j := range order {
		if j == 0 {
			w.put(24, uint64(i))
			last[i] = b[len(b)-1]
		} else {
			last[i] = b[j-1]
		}
	}
	var used [256]bool
	for _, x := range b {
		used[x] = true
	}
	var front []byte
	for g := range 16 {
		w.put(1, flag(slices.Contains(used[16*g:16*g+16], true)))
	}
	for g := range 16 {
		if !slices.Contains(used[16*g:16*g+16], true) {
			continue
		}
		for x := 16 * g; x < 16*g+16; x++ {
			w.put(1, flag(used[x]))
			if used[x] {
				front = append(front, byte(x))
			}
		}
	}
	symbols, alphabet := moveToFront(last, front)
	lengths := codeLengths(symbols, alphabet)
	w.put(3, 2) // the format requires two tables: both are the same, and the first is always chosen
	selectors := (len(symbols) + 49) / 50
	w.put(15, uint64(selectors))
	for range selectors {
		w.put(1, 0)
	}
	for range 2 {
		w.table(lengths)
	}
	codes := codesOf(lengths)
	for _, s := range symbols {
		w.put(uint(lengths[s]), uint64(codes[s]))
	}
}

func flag(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// moveToFront replaces bytes by their indices in a list, and moves each to its front. Runs of index 0 are written in
// bijective base 2, with symbols 0 and 1 for the digits 1 and 2. The last symbol ends the block.
func moveToFront(b, front []byte) (symbols []uint16, alphabet int) {
	alphabet = len(front) + 2
	run := 0
	endRun := func() {
		for ; run > 0; run = (run - 1) >> 1 {
			symbols = append(symbols, uint16(1-run&1))
		}
	}
	for _, x := range b {
		k := slices.Index(front, x)
		if k == 0 {
			run++
			continue
		}
		endRun()
		copy(front[1:], front[:k])
		front[0] = x
		symbols = append(symbols, uint16(k+1))
	}
	endRun()
	return append(symbols, uint16(alphabet-1)), alphabet
}

// table writes code lengths, each as steps from the previous one.
func (w *bitWriter) table(lengths []byte) {
	at := lengths[0]
	w.put(5, uint64(at))
	for _, l := range lengths {
		for ; at < l; at++ {
			w.put(2, 0b10)
		}
		for ; at > l; at-- {
			w.put(2, 0b11)
		}
		w.put(1, 0)
	}
}

// tree is a heap of subtrees by weight.
type tree struct{ weight, node []int }

func (t *tree) Len() int           { return len(t.node) }
func (t *tree) Less(i, j int) bool { return t.weight[t.node[i]] < t.weight[t.node[j]] }
func (t *tree) Swap(i, j int)      { t.node[i], t.node[j] = t.node[j], t.node[i] }
func (t *tree) Push(x any)         { t.node = append(t.node, x.(int)) }
func (t *tree) Pop() any {
	x := t.node[len(t.node)-1]
	t.node = t.node[:len(t.node)-1]
	return x
}

// codeLengths returns the lengths of a Huffman code of at most 17 bits: weights are flattened until no code is longer.
func codeLengths(symbols []uint16, alphabet int) []byte {
	weight := make([]int, alphabet)
	for _, s := range symbols {
		weight[s]++
	}
	for {
		t := &tree{weight: make([]int, alphabet, 2*alphabet)}
		for i, x := range weight {
			t.weight[i] = max(x, 1)
			t.node = append(t.node, i)
		}
		heap.Init(t)
		parent := make([]int, 2*alphabet)
		for t.Len() > 1 {
			a, b := heap.Pop(t).(int), heap.Pop(t).(int)
			k := len(t.weight)
			t.weight = append(t.weight, t.weight[a]+t.weight[b])
			parent[a], parent[b] = k, k
			heap.Push(t, k)
		}
		root := len(t.weight) - 1
		lengths := make([]byte, alphabet)
		most := byte(0)
		for i := range lengths {
			for n := i; n != root; n = parent[n] {
				lengths[i]++
			}
			most = max(most, lengths[i])
		}
		if most <= 17 {
			return lengths
		}
		for i := range weight {
			weight[i] = weight[i]/2 + 1
		}
	}
}

// codesOf returns the codes: shorter ones first, equally long ones in the order of symbols.
func codesOf(lengths []byte) []uint32 {
	codes := make([]uint32, len(lengths))
	code := uint32(0)
	for l := byte(1); l <= 17; l++ {
		for i, x := range lengths {
			if x == l {
				codes[i] = code
				code++
			}
		}
		code <<= 1
	}
	return codes
}
