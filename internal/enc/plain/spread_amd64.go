//go:build amd64 && !purego

package plain

import "golang.org/x/sys/cpu"

//go:generate go run -C gen . -out ../spread_amd64.s -stubs ../spread_stubs_amd64.go -pkg plain

func init() {
	x := &cpu.X86
	if !x.HasAVX512F || !x.HasAVX512BW || !x.HasAVX512DQ || !x.HasPOPCNT {
		return
	}
	spreads[4], spreads[8] = spread4, spread8
	if x.HasAVX512VBMI2 {
		spreads[1], spreads[2] = spread1, spread2
	}
}
