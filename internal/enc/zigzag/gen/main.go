// Command gen writes the assembly that decodes zig-zag varints: go run . in this folder (see go:generate in
// zigzag_amd64.go).
//
// A step takes 64 bytes, which have eight varints of at most eight bytes each, or more groups of eight: the bytes below
// 0x80 end them, VPCOMPRESSB lists where, and VPERMB brings the bytes of each of a group to a lane of its own. The
// seven bits of each byte are put together by two multiplications, by 1 and 128, and by 1 and 2¹⁴.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64,!purego")
	c := constants()
	decode("ints", 4, 5, c)
	decode("longs", 8, 8, c)
	Generate()
}

// eight is a constant of 64 bytes: x(i) is word i.
func eight(name string, x func(i int) uint64) Mem {
	m := GLOBL(name, RODATA|NOPTR)
	for i := range 8 {
		DATA(8*i, U64(x(i)))
	}
	return m
}

type consts struct{ places, copies, steps, sevens, words, dwords Mem }

func constants() consts {
	all := func(x uint64) func(int) uint64 { return func(int) uint64 { return x } }
	return consts{
		// the number of each byte
		places: eight("places", func(i int) uint64 { return 0x0706050403020100 + uint64(i)*0x0808080808080808 }),
		// the lowest byte of its lane, eight times
		copies: eight("copies", func(i int) uint64 { return uint64(i%2) * 0x0808080808080808 }),
		steps:  eight("steps", all(0x0706050403020100)),
		sevens: eight("sevens", all(0x7f7f7f7f7f7f7f7f)),
		words:  eight("words", all(0x8001800180018001)),  // bytes 1, 128
		dwords: eight("dwords", all(0x4000000140000001)), // words 1, 2¹⁴
	}
}

// load is a constant in a register.
func load(m Mem) reg.VecVirtual {
	z := ZMM()
	VMOVDQU64(m, z)
	return z
}

// number is a number in all lanes.
func number(x uint64) reg.VecVirtual {
	r, z := GP64(), ZMM()
	MOVQ(U64(x), r)
	VPBROADCASTQ(r, z)
	return z
}

// decode is for values of width bytes, whose varints have at most most bytes.
func decode(name string, width, most int, c consts) {
	TEXT(name, NOSPLIT, "func(dst, src *byte, groups, last int) (done, used int)")
	Pragma("noescape")
	Doc(name+" decodes at most so many groups of eight values, as long as one begins at last or before: it may read "+
		"64 bytes from there.",
		"It stops before a group that has a varint of more bytes, or a value of more bits, than is usual.")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	groups, last := Load(Param("groups"), GP64()), Load(Param("last"), GP64())
	places, copies, steps := load(c.places), load(c.copies), load(c.steps)
	sevens, words, dwords := load(c.sevens), load(c.words), load(c.dwords)
	one, long, whole, low, high := number(1), number(uint64(most-1)), number(56), number(1<<28-1), number((1<<28-1)<<28)
	minus, greatest, zero := number(1<<64-1), number(1<<32-1), ZMM()
	VPXORQ(zero, zero, zero)
	pos, done := GP64(), GP64()
	XORQ(pos, pos)
	XORQ(done, done)
	Label(name + "loop")
	CMPQ(done, groups)
	JGE(LabelRef(name + "end"))
	CMPQ(pos, last)
	JG(LabelRef(name + "end"))

	// Where the varints of 64 bytes end, and how many groups that is.
	b, k, at, before := ZMM(), K(), ZMM(), ZMM()
	VMOVDQU64(Mem{Base: src, Index: pos, Scale: 1}, b)
	VPMOVB2M(b, k)
	KNOTQ(k, k)
	VPCOMPRESSB_Z(places, k, at)
	left, taken := GP64(), GP64()
	KMOVQ(k, left)
	POPCNTQ(left, left)
	SHRQ(Imm(3), left)
	JZ(LabelRef(name + "end"))
	XORQ(taken, taken)
	VMOVDQA64(minus, before)

	// The next group: where its varints end, and begin.
	Label(name + "group")
	next := GP64()
	VMOVQ(at.AsX(), next)
	SHRQ(Imm(56), next)
	ends, begins, size := ZMM(), ZMM(), ZMM()
	VPMOVZXBQ(at.AsX(), ends)
	VALIGNQ(Imm(7), before, ends, begins)
	VPADDQ(one, begins, begins)
	VPSUBQ(begins, ends, size) // less one
	bad := K()
	VPCMPUQ(Imm(6), long, size, bad) // greater
	KTESTB(bad, bad)
	JNZ(LabelRef(name + "odd"))

	// The bytes of each to its lane, without what is after it and their highest bits.
	x, keep := ZMM(), ZMM()
	VPSHUFB(copies, begins, x)
	VPADDB(steps, x, x)
	VPERMB(b, x, x)
	VPSLLQ(Imm(3), size, size)
	VPSUBQ(size, whole, size)
	VPSRLVQ(size, sevens, keep)
	VPANDQ(keep, x, x)
	VPMADDUBSW(x, words, x)
	VPMADDWD(dwords, x, x)
	upper := ZMM()
	VPSRLQ(Imm(4), x, upper)
	VPANDQ(high, upper, upper)
	VPANDQ(low, x, x)
	VPORQ(upper, x, x)
	if width == 4 {
		VPCMPUQ(Imm(6), greatest, x, bad)
		KTESTB(bad, bad)
		JNZ(LabelRef(name + "odd"))
	}

	// Zig-zag.
	sign := ZMM()
	VPANDQ(one, x, sign)
	VPSUBQ(sign, zero, sign)
	VPSRLQ(Imm(1), x, x)
	VPXORQ(sign, x, x)
	if width == 4 {
		VPMOVQD(x, Mem{Base: dst})
	} else {
		VMOVDQU64(x, Mem{Base: dst})
	}
	ADDQ(Imm(uint64(8*width)), dst)
	LEAQ(Mem{Base: next, Disp: 1}, taken)
	INCQ(done)
	VMOVDQA64(ends, before)
	VALIGNQ(Imm(1), at, at, at)
	DECQ(left)
	JZ(LabelRef(name + "next"))
	CMPQ(done, groups)
	JL(LabelRef(name + "group"))
	Label(name + "next")
	ADDQ(taken, pos)
	JMP(LabelRef(name + "loop"))
	Label(name + "odd")
	ADDQ(taken, pos)
	Label(name + "end")
	Store(done, ReturnIndex(0))
	Store(pos, ReturnIndex(1))
	VZEROUPPER()
	RET()
}
