package page

import (
	"math/bits"
	"unicode/utf8"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/fault"
	"stoa/format/trevni/internal/container"
	"stoa/format/trevni/internal/layout"
	"stoa/internal/enc/plain"
	"stoa/vec"
)

// dense appends n values of p, which are contiguous in src, to dst, and returns how many bytes they took. Errors are
// relative to src.
func (p *Physical) dense(dst *vec.Vector, src []byte, n int, t *decoding) (used int, err error) {
	info := &layout.Types[p.StoredType]
	if need := p.StoredType.MinBytes(int64(n)); need > int64(len(src)) {
		return 0, fault.Rel(0, len(src), "", "%d values take at least %d bytes, there are %d", n, need, len(src))
	}
	if info.Form == layout.FormNone {
		if w := int64(max(dst.Width(), 1)); int64(n)*w > t.limit {
			return 0, fault.Limitf(fault.Span{}, "",
				"%d null values are more than a page may have (page limit or memory limit)", n)
		}
		dst.ExtendNulls(n)
		return 0, nil
	}
	if p.Conv != nil {
		return p.Conv(p, dst, src, n, t)
	}
	switch info.Form {
	case layout.FormBits:
		at := dst.Extend(n)
		plain.CopyBits(dst.Bits(), at, src, 0, n)
		return (n + 7) / 8, nil
	case layout.FormFixed:
		at := dst.Extend(n)
		return copy(dst.Data(at), src[:n*info.Width]), nil
	case layout.FormVarint:
		at := dst.Extend(n)
		if p.StoredType == layout.Int {
			return decodeInts(vec.Fixed[int32](dst, at), src)
		}
		return decodeLongs(vec.Fixed[int64](dst, at), src)
	}
	return denseStrings(dst, src, n, p.StoredType == layout.String)
}

// denseStrings appends n strings, each stored as length and bytes.
func denseStrings(dst *vec.Vector, src []byte, n int, text bool) (used int, err error) {
	at := dst.Extend(n)
	offs := dst.Offsets(at)
	base := offs[0]
	out, err := dst.Bytes(base, int64(len(src))) // large enough: lengths take some of src
	if err != nil {
		return 0, err
	}
	pos, end := 0, 0
	for i := 0; i < n; i++ {
		if k := shortStrings(offs[i+1:n+1], out[end:], src[pos:], base+int32(end)); k > 0 {
			size := int(offs[i+k]-base) - end
			pos, end, i = pos+k+size, end+size, i+k
			if i == n {
				break
			}
		}
		if pos >= len(src) {
			return pos, truncated(src, i, n)
		}
		l, k := int64(src[pos]>>1), 1 // the usual length is one byte
		if src[pos]&0x81 != 0 {
			if l, k = layout.Varint(src[pos:]); k <= 0 {
				return pos, tooWide(src, pos, i, 10)
			}
		}
		if l < 0 || l > int64(len(src)-pos-k) {
			return pos, fault.Rel(pos, k, "", "value %d has a length of %d, %d bytes are left", i, l, len(src)-pos-k)
		}
		from := pos + k
		if l <= 16 && from+16 <= len(src) {
			*(*[16]byte)(out[end:]) = *(*[16]byte)(src[from:]) // surplus bytes are overwritten, or lie in vec.Slack
		} else {
			copy(out[end:], src[from:from+int(l)])
		}
		pos, end = from+int(l), end+int(l)
		offs[i+1] = base + int32(end)
	}
	if text {
		if i := InvalidUTF8(out[:end], offs); i >= 0 {
			return pos, fault.Rel(0, len(src), "", "value %d is not UTF-8", i)
		}
	}
	return pos, nil
}

// shortStrings decodes strings of at most 48 bytes and returns their number. It stops at the first longer one and near
// the end of src. off is the offset of the first. It predicts that the next string is as long as this one, so that the
// processor need not wait for one length to find the next. A misprediction costs more than waiting: after too many, it
// stops predicting.
func shortStrings(truncated []int32, out, src []byte, off int32) int {
	const maxLen, room = 48, 49 // room: a length and the longest string
	if len(src) < room || len(out) < len(src) {
		return 0
	}
	in, to := unsafe.Pointer(unsafe.SliceData(src)), unsafe.Pointer(unsafe.SliceData(out))
	pos, last := uintptr(0), uintptr(len(src)-room)
	prev, step, wrong, i := byte(0), uintptr(1), 0, 0
	for ; i < len(truncated) && wrong < 16+i/8; i++ {
		if pos > last {
			return i
		}
		l := *(*byte)(unsafe.Add(in, pos))
		if l != prev {
			if l&1 != 0 || l > 2*maxLen {
				return i
			}
			prev, step = l, uintptr(l>>1)+1
			wrong++
		}
		copyShort(unsafe.Add(to, pos-uintptr(i)), unsafe.Add(in, pos+1), l)
		pos += step
		truncated[i] = off + int32(pos) - int32(i) - 1
	}
	for ; i < len(truncated); i++ {
		if pos > last {
			return i
		}
		l := *(*byte)(unsafe.Add(in, pos))
		if l&1 != 0 || l > 2*maxLen {
			return i
		}
		copyShort(unsafe.Add(to, pos-uintptr(i)), unsafe.Add(in, pos+1), l)
		pos += uintptr(l>>1) + 1
		truncated[i] = off + int32(pos) - int32(i) - 1
	}
	return len(truncated)
}

// InvalidUTF8 returns the index of the first string that is not UTF-8, or -1. b has the bytes from offs[0] on.
func InvalidUTF8(b []byte, offs []int32) int {
	if ascii(b) {
		return -1
	}
	for i := range offs[:len(offs)-1] {
		if !utf8.Valid(b[offs[i]-offs[0] : offs[i+1]-offs[0]]) {
			return i
		}
	}
	return -1
}

func ascii(b []byte) bool {
	for len(b) >= 32 {
		w := (*[4]uint64)(unsafe.Pointer(unsafe.SliceData(b)))
		if (w[0]|w[1]|w[2]|w[3])&0x8080808080808080 != 0 {
			return false
		}
		b = b[32:]
	}
	for _, x := range b {
		if x >= 0x80 {
			return false
		}
	}
	return true
}

// skipValues returns the size in bytes of n values of type t at the front of src; -1 if src is too short or a length is
// invalid.
func skipValues(t layout.Type, src []byte, n int) int {
	switch info := &layout.Types[t]; info.Form {
	case layout.FormNone:
		return 0
	case layout.FormBits:
		if k := (n + 7) / 8; k <= len(src) {
			return k
		}
	case layout.FormFixed:
		if int64(n)*int64(info.Width) <= int64(len(src)) {
			return n * info.Width
		}
	case layout.FormVarint:
		return skipVarints(src, n)
	case layout.FormString:
		pos := 0
		for range n {
			l, k := layout.Varint(src[pos:])
			if k <= 0 || l < 0 || l > int64(len(src)-pos-k) {
				return -1
			}
			pos += k + int(l)
		}
		return pos
	}
	return -1
}

// spread moves the last k values of dst, appended from entry at on, to the valid ones among n entries from at on. mark
// sets the bits of these n entries in the validity bitmap, exactly k of them to 1.
func spread(dst *vec.Vector, at, k, n int, a *vec.Arena, mark func(valid []byte)) {
	dst.Extend(n - k)
	if k == n && !dst.HasValidity() {
		return
	}
	valid := dst.Validity()
	mark(valid)
	dst.AddNulls(n - k)
	switch {
	case dst.Width() > 0:
		plain.ExpandFixed(dst.Data(at), dst.Width(), n, valid, at)
	case dst.Type.ID() == arrow.BOOL:
		spreadBits(dst.Bits(), at, n, k, valid, a.Bytes((k+7)/8))
	case dst.Type.ID() != arrow.NULL:
		plain.ExpandOffsets(dst.Offsets(at), n, valid, at)
	}
}

// spreadBits is spread for booleans. spare has room for k bits.
func spreadBits(b []byte, at, n, k int, valid, spare []byte) {
	plain.CopyBits(spare, 0, b, at, k)
	vec.SetBits(b, at, at+n, false)
	next := 0
	for i := at; i < at+n; {
		if i&7 != 0 || at+n-i < 8 {
			if valid[i>>3]>>(i&7)&1 != 0 {
				b[i>>3] |= spare[next>>3] >> (next & 7) & 1 << (i & 7)
				next++
			}
			i++
			continue
		}
		for w := valid[i>>3]; w != 0; w &= w - 1 {
			b[i>>3] |= spare[next>>3] >> (next & 7) & 1 << bits.TrailingZeros8(w)
			next++
		}
		i += 8
	}
}

// First returns the first value of a block in the form of its descriptor; nil if there is none.
func (p *Physical) First(o *container.Opened) []byte {
	n := skipValues(p.StoredType, o.Raw, 1)
	if n < 0 {
		return nil
	}
	got := o.Raw[:n]
	if layout.Types[p.StoredType].Form == layout.FormString {
		_, k := layout.Varint(got)
		got = got[k:]
	}
	return got
}
