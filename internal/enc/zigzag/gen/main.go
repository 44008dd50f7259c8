// Command gen generates the assembly that decodes zig-zag varints: go run . in this folder (see go:generate in
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

// load loads a constant into a register.
func load(m Mem) reg.VecVirtual {
	z := ZMM()
	VMOVDQU64(m, z)
	return z
}

// number sets all lanes to a number.
func number(x uint64) reg.VecVirtual {
	r, z := GP64(), ZMM()
	MOVQ(U64(x), r)
	VPBROADCASTQ(r, z)
	return z
}

// decoder is the function that is being generated. The registers that its parts share are fields.
type decoder struct {
	name  string // before all of its labels
	width int    // bytes of a value

	dst, src, groups, last      reg.Register
	places, copies, steps       reg.VecVirtual // see consts
	sevens, words, dwords       reg.VecVirtual
	one, long, whole, low, high reg.VecVirtual
	minus, greatest, zero       reg.VecVirtual

	pos, done       reg.GPVirtual  // bytes of src, and groups, that are decoded
	left, taken     reg.GPVirtual  // groups of these 64 bytes that are left, and bytes of those that are decoded
	next            reg.GPVirtual  // where the last varint of the group ends
	b, at           reg.VecVirtual // the 64 bytes, and where varints end in them, from this group on
	before, ends    reg.VecVirtual // where the varints end: of the group before, and of this
	begins, size, x reg.VecVirtual // of this group: where the varints begin, their lengths minus one, and their values
	k, bad          reg.OpmaskVirtual
}

// decode generates the function for values of width bytes, whose varints have at most most bytes.
func decode(name string, width, most int, c consts) {
	TEXT(name, NOSPLIT, "func(dst, src *byte, groups, last int) (done, used int)")
	Pragma("noescape")
	Doc(name+" decodes up to groups groups of eight values, each of which begins at offset last or before: it may "+
		"read 64 bytes from there.",
		"It stops before a group with a varint of too many bytes or a value of too many bits.")
	d := begin(name, width, most, c)
	Label(name + "loop")
	CMPQ(d.done, d.groups)
	JGE(LabelRef(name + "end"))
	CMPQ(d.pos, d.last)
	JG(LabelRef(name + "end"))
	d.find()
	Label(name + "group")
	d.bounds()
	d.join()
	d.unzigzag()
	d.advance()
	Label(name + "odd")
	ADDQ(d.taken, d.pos)
	Label(name + "end")
	Store(d.done, ReturnIndex(0))
	Store(d.pos, ReturnIndex(1))
	VZEROUPPER()
	RET()
}

// begin loads the arguments and the constants.
func begin(name string, width, most int, c consts) *decoder {
	d := &decoder{name: name, width: width}
	d.dst, d.src = Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	d.groups, d.last = Load(Param("groups"), GP64()), Load(Param("last"), GP64())
	d.places, d.copies, d.steps = load(c.places), load(c.copies), load(c.steps)
	d.sevens, d.words, d.dwords = load(c.sevens), load(c.words), load(c.dwords)
	d.one, d.long, d.whole = number(1), number(uint64(most-1)), number(56)
	d.low, d.high = number(1<<28-1), number((1<<28-1)<<28)
	d.minus, d.greatest, d.zero = number(1<<64-1), number(1<<32-1), ZMM()
	VPXORQ(d.zero, d.zero, d.zero)
	d.pos, d.done = GP64(), GP64()
	XORQ(d.pos, d.pos)
	XORQ(d.done, d.done)
	return d
}

// find finds the ends of the varints in 64 bytes, and the number of groups.
func (d *decoder) find() {
	d.b, d.k, d.at, d.before = ZMM(), K(), ZMM(), ZMM()
	VMOVDQU64(Mem{Base: d.src, Index: d.pos, Scale: 1}, d.b)
	VPMOVB2M(d.b, d.k)
	KNOTQ(d.k, d.k)
	VPCOMPRESSB_Z(d.places, d.k, d.at)
	d.left, d.taken = GP64(), GP64()
	KMOVQ(d.k, d.left)
	POPCNTQ(d.left, d.left)
	SHRQ(Imm(3), d.left)
	JZ(LabelRef(d.name + "end"))
	XORQ(d.taken, d.taken)
	VMOVDQA64(d.minus, d.before)
}

// bounds finds where the varints of the next group begin and end; a varint that is too long ends decoding.
func (d *decoder) bounds() {
	d.next = GP64()
	VMOVQ(d.at.AsX(), d.next)
	SHRQ(Imm(56), d.next)
	d.ends, d.begins, d.size = ZMM(), ZMM(), ZMM()
	VPMOVZXBQ(d.at.AsX(), d.ends)
	VALIGNQ(Imm(7), d.before, d.ends, d.begins)
	VPADDQ(d.one, d.begins, d.begins)
	VPSUBQ(d.begins, d.ends, d.size) // less one
	d.bad = K()
	VPCMPUQ(Imm(6), d.long, d.size, d.bad) // greater
	KTESTB(d.bad, d.bad)
	JNZ(LabelRef(d.name + "odd"))
}

// join moves the bytes of each varint to its lane, without later bytes and the highest bits, and combines them; a value
// that is too large ends decoding.
func (d *decoder) join() {
	x, keep := ZMM(), ZMM()
	VPSHUFB(d.copies, d.begins, x)
	VPADDB(d.steps, x, x)
	VPERMB(d.b, x, x)
	VPSLLQ(Imm(3), d.size, d.size)
	VPSUBQ(d.size, d.whole, d.size)
	VPSRLVQ(d.size, d.sevens, keep)
	VPANDQ(keep, x, x)
	VPMADDUBSW(x, d.words, x)
	VPMADDWD(d.dwords, x, x)
	upper := ZMM()
	VPSRLQ(Imm(4), x, upper)
	VPANDQ(d.high, upper, upper)
	VPANDQ(d.low, x, x)
	VPORQ(upper, x, x)
	if d.width == 4 {
		VPCMPUQ(Imm(6), d.greatest, x, d.bad)
		KTESTB(d.bad, d.bad)
		JNZ(LabelRef(d.name + "odd"))
	}
	d.x = x
}

// unzigzag turns the group into signed values, and stores them.
func (d *decoder) unzigzag() {
	sign := ZMM()
	VPANDQ(d.one, d.x, sign)
	VPSUBQ(sign, d.zero, sign)
	VPSRLQ(Imm(1), d.x, d.x)
	VPXORQ(sign, d.x, d.x)
	if d.width == 4 {
		VPMOVQD(d.x, Mem{Base: d.dst})
	} else {
		VMOVDQU64(d.x, Mem{Base: d.dst})
	}
	ADDQ(Imm(uint64(8*d.width)), d.dst)
}

// advance moves to the next group, in these 64 bytes or the next.
func (d *decoder) advance() {
	LEAQ(Mem{Base: d.next, Disp: 1}, d.taken)
	INCQ(d.done)
	VMOVDQA64(d.ends, d.before)
	VALIGNQ(Imm(1), d.at, d.at, d.at)
	DECQ(d.left)
	JZ(LabelRef(d.name + "next"))
	CMPQ(d.done, d.groups)
	JL(LabelRef(d.name + "group"))
	Label(d.name + "next")
	ADDQ(d.taken, d.pos)
	JMP(LabelRef(d.name + "loop"))
}
