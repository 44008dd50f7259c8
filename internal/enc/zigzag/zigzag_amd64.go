//go:build amd64 && !purego

package zigzag

import "golang.org/x/sys/cpu"

//go:generate go run -C gen . -out ../zigzag_amd64.s -stubs ../zigzag_stubs_amd64.go -pkg zigzag

func init() {
	if x := &cpu.X86; x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VBMI && x.HasAVX512VBMI2 {
		levels = append(levels, level{name: "AVX-512", ints: ints, longs: longs})
	}
}
