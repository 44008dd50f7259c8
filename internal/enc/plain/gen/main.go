// Command gen writes the assembly that spreads values over rows: go run . in this folder (see go:generate in spread_amd64.go).
//
// spreadN puts the values of N bytes at src, as many as w has ones, to the slots of dst that the bits of w name, the lowest bit being the
// first slot's, and zero to the others. A register takes 64/N slots; VPEXPAND does one. It goes from the back: what a step reads that a later
// store has not reached yet lies before it, as src lies before dst or there.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64,!purego")
	for _, width := range []int{1, 2, 4, 8} {
		spread(width)
	}
	Generate()
}

func spread(width int) {
	name := fmt.Sprintf("spread%d", width)
	TEXT(name, NOSPLIT, "func(dst, src *byte, w uint64)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s spreads values of %d bytes over the 64 slots at dst; src must not lie behind dst. It may read 64 bytes from any of the values on.", name, width))
	dst, src, w := Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("w"), GP64())
	slots := 64 / width
	for g := width - 1; g >= 0; g-- {
		bits, below := GP64(), GP64()
		MOVQ(w, bits)
		from := Mem{Base: src}
		if g > 0 {
			SHLQ(Imm(uint64(64-g*slots)), bits)
			POPCNTQ(bits, below) // the values before this step's
			MOVQ(w, bits)
			SHRQ(Imm(uint64(g*slots)), bits)
			from = Mem{Base: src, Index: below, Scale: uint8(width)}
		}
		k, z := K(), ZMM()
		mask(slots, bits, k)
		VMOVDQU64(from, z)
		expand(width, k, z)
		VMOVDQU64(z, Mem{Base: dst, Disp: 64 * g})
	}
	VZEROUPPER()
	RET()
}

func mask(slots int, bits reg.GPVirtual, k reg.OpmaskVirtual) {
	switch slots {
	case 64:
		KMOVQ(bits, k)
	case 32:
		KMOVD(bits.As32(), k)
	case 16:
		KMOVW(bits.As32(), k)
	default:
		KMOVB(bits.As32(), k)
	}
}

func expand(width int, k, z Op) {
	switch width {
	case 1:
		VPEXPANDB_Z(z, k, z)
	case 2:
		VPEXPANDW_Z(z, k, z)
	case 4:
		VPEXPANDD_Z(z, k, z)
	case 8:
		VPEXPANDQ_Z(z, k, z)
	}
}
