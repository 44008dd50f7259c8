//go:build amd64 && !purego

package rle

import "golang.org/x/sys/cpu"

//go:generate go run -C gen . -out ../unpack_amd64.s -stubs ../unpack_stubs_amd64.go -pkg rle

func init() {
	if x := &cpu.X86; x.HasAVX512F && x.HasAVX512BW && x.HasAVX512VBMI {
		levels = append(levels, &kernels{
			name:   "AVX-512",
			narrow: [9]unpacker{1: unpack4to1VBMI, 2: unpack4to2VBMI, 4: unpack4to4VBMI},
			broad:  [9]unpacker{4: unpack8to4VBMI, 8: unpack8to8VBMI},
		})
	}
	if cpu.X86.HasAVX2 {
		levels = append(levels, &kernels{
			name:     "AVX2",
			narrow:   [9]unpacker{1: unpack4to1AVX2, 2: unpack4to2AVX2, 4: unpack4to4AVX2},
			broad:    [9]unpacker{4: unpack8to4AVX2, 8: unpack8to8AVX2},
			quarters: true,
		})
	}
}
