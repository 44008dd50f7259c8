// Command gen generates the assembly that unpacks values of a few bits: go run . in this folder (see go:generate in
// unpack_amd64.go).
//
// A step makes 16 values of up to 25 bits, or 8 of up to 57, from the 64 bytes at src: a shuffle takes to each lane the
// 4 (8) bytes in which its value lies, a shift and a mask do the rest. As 16 (8) values of any width end at a whole
// byte, all steps have the same offsets and shifts, which the caller computes.
//
// With AVX-512 one VPERMB shuffles the whole step. AVX2 shuffles within 16 bytes only; so the step is loaded as four
// quarters of 16 bytes, each from the byte in which its first value begins. A quarter of 4 values of 25 bits (2 of 57)
// and up to 7 bits before them is 107 (121) bits.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64,!purego")
	for _, level := range []struct {
		name string
		loop func(lane, width int, dst, src, stride, t reg.Register) (step func())
	}{{"VBMI", vbmi}, {"AVX2", avx2}} {
		for _, k := range []struct{ lane, width int }{{4, 4}, {4, 2}, {4, 1}, {8, 8}, {8, 4}} {
			name := fmt.Sprintf("unpack%dto%d%s", k.lane, k.width, level.name)
			TEXT(name, NOSPLIT, "func(dst, src *byte, steps, stride int, t *[224]byte)")
			Pragma("noescape")
			Doc(fmt.Sprintf("%s does steps times %d values, %d bytes each, from src, src+stride, …; a step reads up "+
				"to 64 bytes.", name, 64/k.lane, k.width))
			dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
			steps, stride, t := Load(Param("steps"), GP64()), Load(Param("stride"), GP64()), Load(Param("t"), GP64())
			step := level.loop(k.lane, k.width, dst, src, stride, t)
			Label("next")
			step()
			ADDQ(stride, src)
			ADDQ(U32(uint32(64/k.lane*k.width)), dst)
			DECQ(steps)
			JNZ(LabelRef("next"))
			VZEROUPPER()
			RET()
		}
	}
	Generate()
}

// vbmi loads the operands of the steps, and returns the function that generates a step, for values decoded to width
// bytes, in lanes of lane bytes.
func vbmi(lane, width int, dst, src, stride, t reg.Register) func() {
	places, shifts, mask, v := ZMM(), ZMM(), ZMM(), ZMM()
	VMOVDQU64(Mem{Base: t}, places)
	VMOVDQU64(Mem{Base: t, Disp: 64}, shifts)
	VMOVDQU64(Mem{Base: t, Disp: 128}, mask)
	to := Mem{Base: dst}
	return func() {
		VMOVDQU64(Mem{Base: src}, v)
		VPERMB(v, places, v)
		if lane == 4 {
			VPSRLVD(shifts, v, v)
			VPANDD(mask, v, v)
		} else {
			VPSRLVQ(shifts, v, v)
			VPANDQ(mask, v, v)
		}
		switch {
		case lane == width:
			VMOVDQU64(v, to)
		case lane == 8:
			VPMOVQD(v, to)
		case width == 2:
			VPMOVDW(v, to)
		default:
			VPMOVDB(v, to)
		}
	}
}

// avx2 is vbmi in two registers of two quarters each.
func avx2(lane, width int, dst, src, stride, t reg.Register) func() {
	var quarters [4]reg.GPVirtual
	for i := range quarters {
		quarters[i] = GP64()
		MOVQ(Mem{Base: t, Disp: 192 + 8*i}, quarters[i])
	}
	mask := YMM()
	VMOVDQU(Mem{Base: t, Disp: 128}, mask)
	var places, shifts, v [2]reg.VecVirtual
	for i := range v {
		places[i], shifts[i], v[i] = YMM(), YMM(), YMM()
		VMOVDQU(Mem{Base: t, Disp: 32 * i}, places[i])
		VMOVDQU(Mem{Base: t, Disp: 64 + 32*i}, shifts[i])
	}
	to := Mem{Base: dst}
	return func() {
		for i, y := range v {
			VMOVDQU(Mem{Base: src, Index: quarters[2*i], Scale: 1}, y.AsX())
			VINSERTI128(Imm(1), Mem{Base: src, Index: quarters[2*i+1], Scale: 1}, y, y)
			VPSHUFB(places[i], y, y)
			if lane == 4 {
				VPSRLVD(shifts[i], y, y)
			} else {
				VPSRLVQ(shifts[i], y, y)
			}
			VPAND(mask, y, y)
		}
		a, b := v[0], v[1]
		switch {
		case lane == width:
			VMOVDQU(a, to)
			VMOVDQU(b, Mem{Base: dst, Disp: 32})
		case lane == 8: // the lower halves of a0 a1 b0 b1, a2 a3 b2 b3
			VSHUFPS(Imm(0x88), b, a, a)
			VPERMQ(Imm(0xd8), a, a)
			VMOVDQU(a, to)
		case width == 2: // a0-3 b0-3, a4-7 b4-7
			VPACKUSDW(b, a, a)
			VPERMQ(Imm(0xd8), a, a)
			VMOVDQU(a, to)
		default: // the same in bytes, twice
			VPACKUSDW(b, a, a)
			VPACKUSWB(a, a, a)
			VEXTRACTI128(Imm(1), a, b.AsX())
			VPUNPCKLDQ(b.AsX(), a.AsX(), a.AsX())
			VMOVDQU(a.AsX(), to)
		}
	}
}
