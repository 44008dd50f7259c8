// Command gen generates the assembly that spreads values over rows: go run . in this folder (see go:generate in
// spread_amd64.go).
//
// spreadN puts the values of N bytes at src, as many as w has ones, into the slots of dst whose bits in w are set, the
// lowest bit being the first slot's, and zero into the others. It goes from the back: since src does not begin after
// dst, a store never overwrites a value that a later step reads.
//
// With AVX-512 a register takes 64/N slots; VPEXPAND does one. With AVX2 a step takes 8 slots (4 of 8 bytes): a byte of
// w picks, from a table of 256 times 8 bytes, which value each slot gets, and a shuffle brings it there. A slot without
// a value has 0x80 there, for which VPSHUFB gives zero; VPERMD has no such value, so its lanes are cleared by the
// sign of their number.
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
		spreadAVX512(width)
	}
	picks, quads := tables()
	for _, width := range []int{1, 2, 4, 8} {
		spreadAVX2(width, picks, quads)
	}
	Generate()
}

// header begins the function for values of width bytes; a step reads reads bytes of them.
func header(width int, level string, reads int) (dst, src, w reg.Register) {
	name := fmt.Sprintf("spread%d%s", width, level)
	TEXT(name, NOSPLIT, "func(dst, src *byte, w uint64)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s spreads values of %d bytes over the 64 slots at dst; src must not lie after dst. It may "+
		"read %d bytes from the beginning of any value.", name, width, reads))
	return Load(Param("dst"), GP64()), Load(Param("src"), GP64()), Load(Param("w"), GP64())
}

// step finds the values of step g; a step has slots slots: their bits, lowest first (those of later steps follow), and
// their position.
func step(g, slots, width int, src, w reg.Register) (bits reg.GPVirtual, from Mem) {
	bits = GP64()
	from = Mem{Base: src}
	MOVQ(w, bits)
	if g > 0 {
		below := GP64()
		SHLQ(Imm(uint64(64-g*slots)), bits)
		POPCNTQ(bits, below) // the values before this step's
		MOVQ(w, bits)
		SHRQ(Imm(uint64(g*slots)), bits)
		from = Mem{Base: src, Index: below, Scale: uint8(width)}
	}
	return bits, from
}

func spreadAVX512(width int) {
	dst, src, w := header(width, "AVX512", 64)
	slots := 64 / width
	for g := width - 1; g >= 0; g-- {
		bits, from := step(g, slots, width, src, w)
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

// tables returns the values that each slot gets: picks has 8 bytes for the 8 slots of a byte of bits, quads the numbers
// of two lanes of 4 bytes for each of the 4 slots of half a byte.
func tables() (picks, quads Mem) {
	picks = GLOBL("picks", RODATA|NOPTR)
	for bits := range 256 {
		x, k := uint64(0), uint64(0)
		for i := range 8 {
			if bits>>i&1 != 0 {
				x |= k << (8 * i)
				k++
			} else {
				x |= 0x80 << (8 * i)
			}
		}
		DATA(8*bits, U64(x))
	}
	quads = GLOBL("quads", RODATA|NOPTR)
	for bits := range 16 {
		k := uint64(0)
		for i := range 4 {
			x := uint64(0x8000000080000000)
			if bits>>i&1 != 0 {
				x = (2*k+1)<<32 | 2*k
				k++
			}
			DATA(32*bits+8*i, U64(x))
		}
	}
	return picks, quads
}

func spreadAVX2(width int, picks, quads Mem) {
	slots := min(8, 32/width)
	dst, src, w := header(width, "AVX2", slots*width)
	table, ones := GP64(), XMM()
	switch width {
	case 8:
		LEAQ(quads, table)
	case 2:
		words := GLOBL("upper", RODATA|NOPTR)
		DATA(0, U64(0x0100010001000100))
		DATA(8, U64(0x0100010001000100))
		VMOVDQU(words, ones)
		fallthrough
	default:
		LEAQ(picks, table)
	}
	for g := 64/slots - 1; g >= 0; g-- {
		bits, from := step(g, slots, width, src, w)
		to := Mem{Base: dst, Disp: g * slots * width}
		if width == 8 {
			ANDL(Imm(15), bits.As32())
			SHLL(Imm(5), bits.As32())
			y, pick := YMM(), YMM()
			VMOVDQU(Mem{Base: table, Index: bits, Scale: 1}, pick)
			lanes(y, pick, from, to)
			continue
		}
		MOVBLZX(bits.As8(), bits.As32())
		entry := Mem{Base: table, Index: bits, Scale: 8}
		switch x, pick := XMM(), XMM(); width {
		case 1:
			VMOVQ(entry, pick)
			VMOVQ(from, x)
			VPSHUFB(pick, x, x)
			VMOVQ(x, to)
		case 2: // byte k becomes 2k and 2k+1; 0x80, the least number, stays below zero when doubled with saturation
			VMOVQ(entry, pick)
			VPUNPCKLBW(pick, pick, pick)
			VPADDSB(pick, pick, pick)
			VPADDSB(ones, pick, pick)
			VMOVDQU(from, x)
			VPSHUFB(pick, x, x)
			VMOVDQU(x, to)
		case 4:
			y, pick := YMM(), YMM()
			VPMOVSXBD(entry, pick)
			lanes(y, pick, from, to)
		}
	}
	VZEROUPPER()
	RET()
}

// lanes permutes lanes of 4 bytes by pick.
func lanes(y, pick reg.VecVirtual, from, to Mem) {
	VPERMD(from, pick, y)
	VPSRAD(Imm(31), pick, pick)
	VPANDN(y, pick, y)
	VMOVDQU(y, to)
}
