// Command gen writes the assembly that unpacks values of a few bits: go run . in this folder (see go:generate in unpack_amd64.go).
//
// A step makes 16 values of up to 25 bits, or 8 of up to 57, from the 64 bytes at src: VPERMB takes to each lane the 4 (8) bytes in which
// its value lies, a shift and a mask do the rest. As 16 (8) values of any width end at a whole byte, all steps have the same places and shifts,
// which the caller works out.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

func main() {
	ConstraintExpr("amd64,!purego")
	for _, lane := range []int{4, 8} {
		for width := lane; width >= 1; width /= 2 {
			if lane == 8 && width < 4 {
				break
			}
			unpack(lane, width)
		}
	}
	Generate()
}

// unpack writes the kernel for values that come out in width bytes, worked on in lane bytes.
func unpack(lane, width int) {
	name := fmt.Sprintf("unpack%dto%d", lane, width)
	TEXT(name, NOSPLIT, "func(dst, src *byte, steps, stride int, t *[192]byte)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s does steps times %d values, %d bytes each, from src, src+stride, …; each step reads 64 bytes.", name, 64/lane, width))
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	steps, stride, t := Load(Param("steps"), GP64()), Load(Param("stride"), GP64()), Load(Param("t"), GP64())
	places, shifts, mask, v := ZMM(), ZMM(), ZMM(), ZMM()
	VMOVDQU64(Mem{Base: t}, places)
	VMOVDQU64(Mem{Base: t, Disp: 64}, shifts)
	VMOVDQU64(Mem{Base: t, Disp: 128}, mask)
	Label("next")
	VMOVDQU64(Mem{Base: src}, v)
	VPERMB(v, places, v)
	to := Mem{Base: dst}
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
	ADDQ(stride, src)
	ADDQ(U32(uint32(64/lane*width)), dst)
	DECQ(steps)
	JNZ(LabelRef("next"))
	VZEROUPPER()
	RET()
}
