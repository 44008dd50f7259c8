package write

import (
	"encoding/binary"

	"stoa/format/cfile/internal/block"
	"stoa/internal/pb"
)

// indexTree writes one B-tree of a CFile in post-order: an index block is written when it is full, and its first key is
// added to the block above. So every block except the last of each level is full, and the root comes last.
//
// Source: cfile.md, "CFile Index".
type indexTree struct {
	out    *outFile
	limit  int // a block is written when it has at least two entries and its estimated size exceeds the limit
	levels []*openIndex
	blocks int64
}

// openIndex is an index block under construction:
//
//	entries   varint key length, key, varint offset, varint size
//	u32 …     where each entry begins
//	IndexBlockTrailerPB{1: number of entries, 2: 0 leaf / 1 internal}
//	u32       length of the trailer
type openIndex struct {
	buf    []byte
	starts []uint32
	first  []byte // key of the first entry
}

func newIndexTree(out *outFile, limit int) *indexTree {
	return &indexTree{out: out, limit: limit, levels: []*openIndex{{}}}
}

// add appends an entry to a leaf.
func (t *indexTree) add(key []byte, p block.BlockPtr) error { return t.addAt(0, key, p) }

func (t *indexTree) addAt(level int, key []byte, p block.BlockPtr) error {
	if level == len(t.levels) {
		t.levels = append(t.levels, &openIndex{})
	}
	b := t.levels[level]
	if len(b.starts) == 0 {
		b.first = append(b.first[:0], key...)
	}
	b.starts = append(b.starts, uint32(len(b.buf)))
	b.buf = binary.AppendUvarint(b.buf, uint64(len(key)))
	b.buf = append(b.buf, key...)
	b.buf = binary.AppendUvarint(b.buf, uint64(p.Offset))
	b.buf = binary.AppendUvarint(b.buf, uint64(p.Size))
	// 16 is the estimate for the trailer.
	if len(b.starts) > 1 && len(b.buf)+4*len(b.starts)+16 > t.limit {
		return t.close(level)
	}
	return nil
}

// close writes the open block of a level, if it has entries, and adds it to the level above.
func (t *indexTree) close(level int) error {
	b := t.levels[level]
	if len(b.starts) == 0 {
		return nil
	}
	p, err := t.write(level)
	if err != nil {
		return err
	}
	err = t.addAt(level+1, b.first, p)
	b.buf, b.starts = b.buf[:0], b.starts[:0]
	return err
}

// Finish writes the open blocks and returns the root. A tree without entries is one empty leaf.
func (t *indexTree) Finish() (block.BlockPtr, error) {
	for level := 0; level < len(t.levels)-1; level++ {
		if err := t.close(level); err != nil {
			return block.BlockPtr{}, err
		}
	}
	return t.write(len(t.levels) - 1)
}

func (t *indexTree) write(level int) (block.BlockPtr, error) {
	b := t.levels[level]
	out := b.buf
	for _, s := range b.starts {
		out = binary.LittleEndian.AppendUint32(out, s)
	}
	at := len(out)
	out = pb.AppendUint(out, 1, uint64(len(b.starts)))
	out = pb.AppendUint(out, 2, bit01(level > 0))
	out = binary.LittleEndian.AppendUint32(out, uint32(len(out)-at))
	t.blocks++
	return t.out.block(out)
}
