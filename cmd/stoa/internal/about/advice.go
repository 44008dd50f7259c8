package about

import (
	"embed"
	"strings"
	"sync"
)

// advice are the files of findings/: for each code four lines, and an empty one between two codes.
//
//	the code
//	what the finding costs
//	its likely cause
//	the next command, between back quotes, and what it does
//
//go:embed findings/*.txt
var advice embed.FS

// Advice is what findings/ says about a code. Commands in Next are between back quotes.
type Advice struct{ Cost, Cause, Next string }

// Advices returns what is said about each code.
var Advices = sync.OnceValue(func() map[string]Advice {
	out := map[string]Advice{}
	files, err := advice.ReadDir("findings")
	if err != nil {
		panic(err)
	}
	for _, f := range files {
		text, err := advice.ReadFile("findings/" + f.Name())
		if err != nil {
			panic(err)
		}
		for _, entry := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
			lines := strings.Split(entry, "\n")
			if len(lines) != 4 {
				panic("findings/" + f.Name() + ": not four lines: " + entry)
			}
			if _, ok := out[lines[0]]; ok {
				panic("findings/" + f.Name() + ": twice: " + lines[0])
			}
			out[lines[0]] = Advice{lines[1], lines[2], lines[3]}
		}
	}
	return out
})
