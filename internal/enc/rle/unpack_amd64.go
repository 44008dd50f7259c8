//go:build amd64 && !purego

package rle

import "golang.org/x/sys/cpu"

//go:generate go run -C gen . -out ../unpack_amd64.s -stubs ../unpack_stubs_amd64.go -pkg rle

func init() {
	if x := &cpu.X86; x.HasAVX512F && x.HasAVX512BW && x.HasAVX512VBMI {
		narrow = [9]unpacker{1: unpack4to1, 2: unpack4to2, 4: unpack4to4}
		broad = [9]unpacker{4: unpack8to4, 8: unpack8to8}
	}
}
