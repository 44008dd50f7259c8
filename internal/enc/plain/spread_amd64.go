//go:build amd64 && !purego

package plain

import "golang.org/x/sys/cpu"

//go:generate go run -C gen . -out ../spread_amd64.s -stubs ../spread_stubs_amd64.go -pkg plain

func init() {
	x := &cpu.X86
	if !x.HasPOPCNT {
		return
	}
	if x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ {
		s := &spreaders{name: "AVX-512", by: [9]spreader{4: spread4AVX512, 8: spread8AVX512}}
		if x.HasAVX512VBMI2 {
			s.by[1], s.by[2] = spread1AVX512, spread2AVX512
		}
		levels = append(levels, s)
	}
	if x.HasAVX2 {
		levels = append(levels, &spreaders{name: "AVX2",
			by: [9]spreader{1: spread1AVX2, 2: spread2AVX2, 4: spread4AVX2, 8: spread8AVX2}})
	}
	use(levels)
}
