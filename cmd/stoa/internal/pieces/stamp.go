package pieces

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path"
	"strings"

	"stoa/store"
)

// Stamper returns stamps of places: sizes and times of all files in and below them. It computes each stamp once.
type Stamper struct {
	Tree store.Tree
	of   map[string]string
}

// Stamp returns the combined stamp of places. Names are those below the place, or, if full, as the place was spelled.
func (s *Stamper) Stamp(ctx context.Context, places []string, full bool) string {
	if s.of == nil {
		s.of = map[string]string{}
	}
	key := strings.Join(places, "\x00") + "\x00" + fmt.Sprint(full)
	if s.of[key] == "" {
		sum := sha256.New()
		for i, p := range places {
			shown := fmt.Sprint(i)
			if full {
				shown = ""
			}
			if info, err := s.Tree.Stat(ctx, p); err == nil && !info.Dir {
				fmt.Fprintf(sum, "%q %s\n", cmp.Or(shown, p), info.Stamp)
			} else {
				s.below(ctx, sum, p, shown, 0)
			}
		}
		s.of[key] = hex.EncodeToString(sum.Sum(nil)[:16])
	}
	return s.of[key]
}

func (s *Stamper) below(ctx context.Context, w io.Writer, dir, shown string, depth int) {
	const maxDepth = 64
	if depth > maxDepth {
		return
	}
	for info, err := range s.Tree.List(ctx, dir) {
		name, below := info.Name, ""
		if shown != "" {
			name = shown + "/" + path.Base(info.Name)
			below = name
		}
		switch {
		case err != nil:
			fmt.Fprintf(w, "%q %v\n", name, err)
		case info.Dir:
			s.below(ctx, w, info.Name, below, depth+1)
		default:
			fmt.Fprintf(w, "%q %s\n", name, info.Stamp)
		}
	}
}
