//go:build amd64 && !purego

package bitshuffle

import "golang.org/x/sys/cpu"

//go:generate go run -C gen . -out ../pairs_amd64.s -stubs ../stubs_amd64.go -pkg bitshuffle

func init() {
	if x := &cpu.X86; x.HasAVX512F && x.HasAVX512BW && x.HasAVX512VL && x.HasAVX512GFNI {
		pairs = append(pairs, pairsGFNI...)
	}
	if cpu.X86.HasAVX2 {
		pairs = append(pairs, pairsAVX2...)
	}
}

var pairsGFNI = []pair{
	{1, 512, un1GFNI, to1GFNI},
	{2, 512, un2GFNI, to2GFNI},
	{4, 512, un4GFNI, to4GFNI},
	{8, 512, un8GFNI, to8GFNI},
	{16, 512, un16GFNI, to16GFNI},
}

var pairsAVX2 = []pair{
	{1, 256, un1AVX2, to1AVX2},
	{2, 256, un2AVX2, to2AVX2},
	{4, 256, un4AVX2, to4AVX2},
	{8, 256, un8AVX2, to8AVX2},
}
