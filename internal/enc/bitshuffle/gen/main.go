// Command gen generates the assembly of the bit transposition: go run . in this folder (see go:generate in
// pairs_amd64.go).
//
// A kernel takes 8·V elements at once, V being the bytes of a register: V bytes of each row. Its one tool is the pass:
// the bytes of the register pairs (i, i+half) are interleaved, the lower halves of the lanes to register 2i, the upper
// to 2i+1. Number a byte by its register r and its place b in the lane of 16 bytes; then a pass rotates the bits of (r,
// b) to the left by one: what was the highest bit of r becomes the lowest of b. Lanes stay apart all the time.
//
//	rows to elements: for each byte j of the elements
//	  load rows k = 0 … 7                       (r, b) = (k2 k1 k0, g3 g2 g1 g0), g the group of 8 elements
//	  3 passes                                  (g3 g2 g1, g0 k2 k1 k0)
//	  transpose the 8×8 bits of each 8 bytes    (g3 g2 g1, g0 i2 i1 i0), i the element in its group
//	then for each register r = (g3 g2 g1), with those of all j
//	  log2(E) passes                            (upper bits of (g0 i), lower bits of (g0 i) and j)
//
// and these are the elements in order, 16 bytes at a time. Without GFNI the 8×8 bits are exchanged before the passes,
// between registers, where the bits of i still lie in the bytes. The way back is the same in the opposite order: n bits
// rotated by one k times, then n-k times.
package main

import (
	"fmt"
	"strconv"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64,!purego")
	for _, v := range []variant{{"AVX2", 32, false}, {"GFNI", 64, true}} {
		for _, elem := range []int{1, 2, 4, 8, 16} {
			if elem == 16 && !v.gfni {
				continue // 16 registers are too few
			}
			v.untranspose(elem)
			v.transpose(elem)
		}
	}
	Generate()
}

// variant is a level of instructions.
type variant struct {
	name string
	size int // of a register
	gfni bool
}

func (v variant) lanes() int { return v.size / 16 }

func (v variant) vec() reg.VecVirtual {
	if v.size == 64 {
		return ZMM()
	}
	return YMM()
}

// bank returns the data registers of a function: both of its halves use the same ones.
func (v variant) bank(elem int) (r []reg.VecVirtual, spare reg.VecVirtual) {
	for range max(8, elem) {
		r = append(r, v.vec())
	}
	return r, v.vec()
}

func (v variant) move(from, to Op) {
	if v.size == 64 {
		VMOVDQU64(from, to)
	} else {
		VMOVDQU(from, to)
	}
}

// moveLow moves the first lane.
func (v variant) moveLow(from, to Op) {
	if v.size == 64 {
		VMOVDQU64(from, to)
	} else {
		VMOVDQU(from, to)
	}
}

// pass interleaves the registers' bytes once. It overwrites spare, and leaves another register free.
func (v variant) pass(in []reg.VecVirtual, spare reg.VecVirtual) ([]reg.VecVirtual, reg.VecVirtual) {
	out := make([]reg.VecVirtual, len(in))
	half := len(in) / 2
	for i := range half {
		low, high := in[i], in[i+half]
		VPUNPCKLBW(high, low, spare)
		VPUNPCKHBW(high, low, high)
		out[2*i], out[2*i+1] = spare, high
		spare = low
	}
	return out, spare
}

// passes does n passes. The registers are returned in another order, with another spare one.
func (v variant) passes(n int, in []reg.VecVirtual, spare reg.VecVirtual) ([]reg.VecVirtual, reg.VecVirtual) {
	for range n {
		in, spare = v.pass(in, spare)
	}
	return in, spare
}

// rows returns the addresses of 8 rows, width bytes apart.
type rows struct{ p, p4, w, w3 reg.Register }

func newRows(p, w reg.Register) rows {
	x := rows{p: p, p4: GP64(), w: w, w3: GP64()}
	LEAQ(Mem{Base: w, Index: w, Scale: 2}, x.w3)
	return x
}

// begin is called after p has been advanced.
func (x rows) begin() { LEAQ(Mem{Base: x.p, Index: x.w, Scale: 4}, x.p4) }

func (x rows) row(k int) Mem {
	m := Mem{Base: x.p}
	if k >= 4 {
		m.Base = x.p4
	}
	switch k % 4 {
	case 1:
		m.Index, m.Scale = x.w, 1
	case 2:
		m.Index, m.Scale = x.w, 2
	case 3:
		m.Index, m.Scale = x.w3, 1
	}
	return m
}

func (x rows) nextByte() { LEAQ(Mem{Base: x.p, Index: x.w, Scale: 8}, x.p) }

// swapBits exchanges the number of the register for the position of the bit in the byte: 8×8 bits, in all bytes.
func (v variant) swapBits(r []reg.VecVirtual, t reg.VecVirtual, masks [3]reg.VecVirtual) {
	for step, shift := range []int{1, 2, 4} {
		for i := range 8 {
			if i&shift != 0 {
				continue
			}
			a, b := r[i], r[i+shift]
			VPSRLQ(Imm(uint64(shift)), a, t)
			VPXOR(b, t, t)
			VPAND(masks[step], t, t)
			VPXOR(t, b, b)
			VPSLLQ(Imm(uint64(shift)), t, t)
			VPXOR(t, a, a)
		}
	}
}

// consts loads the constants for the exchange of bits.
func (v variant) consts() (masks [3]reg.VecVirtual, flip reg.VecVirtual) {
	if v.gfni {
		flip = v.vec()
		VPBROADCASTQ(constant("diagonal", 0x8040201008040201), flip)
		return masks, flip
	}
	for i, m := range []uint64{0x5555555555555555, 0x3333333333333333, 0x0f0f0f0f0f0f0f0f} {
		masks[i] = v.vec()
		VPBROADCASTQ(constant("mask"+strconv.Itoa(i), m), masks[i])
	}
	return masks, flip
}

var constants = map[string]Mem{}

func constant(name string, x uint64) Mem {
	m, ok := constants[name]
	if !ok {
		m = GLOBL(name, RODATA|NOPTR)
		DATA(0, U64(x))
		constants[name] = m
	}
	return m
}

func log2(n int) (k int) {
	for ; n > 1; n /= 2 {
		k++
	}
	return k
}

// header begins a function and loads its arguments: dst, src, the number of elements (8·V at least), and
// 16·8·V bytes of scratch.
func (v variant) header(name string, elem int) (dst, src, width, tmp reg.Register) {
	full := fmt.Sprintf("%s%d%s", name, elem, v.name)
	TEXT(full, NOSPLIT, "func(dst, src *byte, n int, tmp *[8192]byte)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s is %s for n elements of %d bytes, n being a multiple of 8 and at least %d.", full,
		map[string]string{"un": "Untranspose", "to": "Transpose"}[name], elem, 8*v.size))
	dst, src, width, tmp = Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("n"),
		GP64()), Load(Param("tmp"), GP64())
	SHRQ(Imm(3), width)
	return dst, src, width, tmp
}

// loop emits body for off = 0, V, 2V … width-V; the last step may overlap the previous one, and writes the same bytes
// again.
func (v variant) loop(width reg.Register, body func(off reg.Register)) {
	off, last := GP64(), GP64()
	XORQ(off, off)
	MOVQ(width, last)
	SUBQ(Imm(uint64(v.size)), last)
	Label("next")
	body(off)
	CMPQ(off, last)
	JAE(LabelRef("end"))
	ADDQ(Imm(uint64(v.size)), off)
	CMPQ(off, last)
	CMOVQHI(last, off)
	JMP(LabelRef("next"))
	Label("end")
	VZEROUPPER()
	RET()
}

func (v variant) untranspose(elem int) {
	dst, src, width, tmp := v.header("un", elem)
	masks, flip := v.consts()
	bank, spare := v.bank(elem)
	v.loop(width, func(off reg.Register) {
		p, t, j := GP64(), GP64(), GP64()
		MOVQ(src, p)
		ADDQ(off, p)
		MOVQ(tmp, t)
		MOVQ(U32(uint32(elem)), j)
		x := newRows(p, width)
		Label("bytes")
		x.begin()
		r, t1 := bank[:8], spare
		for k := range r {
			row := k
			if v.gfni { // its matrix begins with the last byte
				row = 7 - k
			}
			v.move(x.row(row), r[k])
		}
		if !v.gfni {
			v.swapBits(r, t1, masks)
		}
		r, _ = v.passes(3, r, t1)
		for k := range r {
			if v.gfni {
				VGF2P8AFFINEQB(Imm(0), r[k], flip, r[k])
			}
			v.move(r[k], Mem{Base: t, Disp: k * elem * v.size})
		}
		x.nextByte()
		ADDQ(Imm(uint64(v.size)), t)
		DECQ(j)
		JNZ(LabelRef("bytes"))

		q, left := GP64(), GP64() // the elements
		MOVQ(off, q)
		SHLQ(Imm(uint64(3+log2(elem))), q)
		ADDQ(dst, q)
		MOVQ(tmp, t)
		MOVQ(U32(8), left)
		Label("elems")
		e := bank[:elem]
		for k := range e {
			v.move(Mem{Base: t, Disp: k * v.size}, e[k])
		}
		e, _ = v.passes(log2(elem), e, spare)
		for k, r := range e {
			for lane := range v.lanes() {
				v.storeLane(r, lane, elem, Mem{Base: q, Disp: lane*128*elem + 16*k})
			}
		}
		v.next(t, q, elem, left)
	})
}

// next advances to the next register of all bytes.
func (v variant) next(t, q reg.Register, elem int, left reg.Register) {
	ADDQ(U32(uint32(elem*v.size)), t)
	ADDQ(U32(uint32(16*elem)), q)
	DECQ(left)
	JNZ(LabelRef("elems"))
}

func (v variant) storeLane(r reg.VecVirtual, lane, elem int, m Mem) {
	switch {
	case lane == 0:
		v.moveLow(r.AsX(), m)
	case v.size == 64:
		VEXTRACTI32X4(Imm(uint64(lane)), r, m)
	default:
		VEXTRACTI128(Imm(uint64(lane)), r, m)
	}
}

func (v variant) loadLanes(r reg.VecVirtual, elem int, m Mem) {
	v.moveLow(m, r.AsX())
	for lane := 1; lane < v.lanes(); lane++ {
		at := m
		at.Disp += lane * 128 * elem
		if v.size == 64 {
			VINSERTI32X4(Imm(uint64(lane)), at, r, r)
		} else {
			VINSERTI128(Imm(uint64(lane)), at, r, r)
		}
	}
}

func (v variant) transpose(elem int) {
	dst, src, width, tmp := v.header("to", elem)
	masks, flip := v.consts()
	bank, spare := v.bank(elem)
	v.loop(width, func(off reg.Register) {
		q, t, left := GP64(), GP64(), GP64()
		MOVQ(off, q)
		SHLQ(Imm(uint64(3+log2(elem))), q)
		ADDQ(src, q)
		MOVQ(tmp, t)
		MOVQ(U32(8), left)
		Label("elems")
		e := bank[:elem]
		for k := range e {
			v.loadLanes(e[k], elem, Mem{Base: q, Disp: 16 * k})
		}
		back := 0 // passes that complete a full turn together with the log2(elem) passes of the other direction
		if elem > 1 {
			back = 4
		}
		e, _ = v.passes(back, e, spare)
		for k, r := range e {
			v.move(r, Mem{Base: t, Disp: k * v.size})
		}
		v.next(t, q, elem, left)

		p, j := GP64(), GP64()
		MOVQ(dst, p)
		ADDQ(off, p)
		MOVQ(tmp, t)
		MOVQ(U32(uint32(elem)), j)
		x := newRows(p, width)
		Label("bytes")
		x.begin()
		r, t1 := bank[:8], spare
		for k := range r {
			v.move(Mem{Base: t, Disp: k * elem * v.size}, r[k])
			if v.gfni {
				VGF2P8AFFINEQB(Imm(0), r[k], flip, r[k]) // the elements of a byte come out in reverse order
				VGF2P8AFFINEQB(Imm(0), flip, r[k], r[k])
			}
		}
		r, t1 = v.passes(4, r, t1)
		if !v.gfni {
			v.swapBits(r, t1, masks)
		}
		for k := range r {
			v.move(r[k], x.row(k))
		}
		x.nextByte()
		ADDQ(Imm(uint64(v.size)), t)
		DECQ(j)
		JNZ(LabelRef("bytes"))
	})
}
