package about

import (
	"bytes"
	_ "embed"
	"io"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
)

// Packed are the files of findings/, one after another and compressed with Brotli: for each code four lines, and an
// empty one between two codes.
//
//	the code
//	what the finding costs
//	its likely cause
//	the next command, between back quotes, and what it does
//
//go:embed findings.br
var Packed []byte

// Advice is what findings/ says about a code. Commands in Next are between back quotes.
type Advice struct{ Cost, Cause, Next string }

// Advices returns what is said about each code.
var Advices = sync.OnceValue(func() map[string]Advice {
	out := map[string]Advice{}
	for _, entry := range strings.Split(strings.TrimSpace(string(unpacked(Packed))), "\n\n") {
		lines := strings.Split(entry, "\n")
		if len(lines) != 4 {
			panic("findings: not four lines: " + entry)
		}
		if _, ok := out[lines[0]]; ok {
			panic("findings: twice: " + lines[0])
		}
		out[lines[0]] = Advice{lines[1], lines[2], lines[3]}
	}
	return out
})

// unpacked decompresses bytes of the program.
func unpacked(b []byte) []byte {
	out, err := io.ReadAll(brotli.NewReader(bytes.NewReader(b)))
	if err != nil {
		panic(err)
	}
	return out
}
