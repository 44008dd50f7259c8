package convert

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

// stamper returns stamps of places: sizes and times of all files in and below them. It computes each stamp once.
type stamper struct {
	tree store.Tree
	of   map[string]string
}

// stampMark begins the stamps of this release. Those of earlier ones are of whole places, and depend on how the place
// was spelled.
const stampMark = "1:"

// put gives a table its stamp: of the directories in which it lies or, where these are not known, of its place, and of
// the files that options name.
func (s *stamper) put(ctx context.Context, t *oneTable, place string, named ...string) {
	whole := append([]string{place}, named...)
	own := whole
	if len(t.entry.Dirs) > 0 {
		own = append(append([]string{}, t.entry.Dirs...), named...)
	}
	t.stamp = stampMark + s.stamp(ctx, own, false)
	t.earlier = func() string { return s.stamp(ctx, whole, true) }
}

// stamped reports whether a stamp of an earlier run is that of the table.
func (t *oneTable) stamped(stamp string) bool {
	return stamp == t.stamp || !strings.HasPrefix(stamp, stampMark) && stamp == t.earlier()
}

// stamp returns the combined stamp of places. Names are those below the place, or, if full, as the place was spelled.
func (s *stamper) stamp(ctx context.Context, places []string, full bool) string {
	key := strings.Join(places, "\x00") + "\x00" + fmt.Sprint(full)
	if s.of[key] == "" {
		sum := sha256.New()
		for i, p := range places {
			shown := fmt.Sprint(i)
			if full {
				shown = ""
			}
			if info, err := s.tree.Stat(ctx, p); err == nil && !info.Dir {
				fmt.Fprintf(sum, "%q %s\n", cmp.Or(shown, p), info.Stamp)
			} else {
				s.below(ctx, sum, p, shown, 0)
			}
		}
		s.of[key] = hex.EncodeToString(sum.Sum(nil)[:16])
	}
	return s.of[key]
}

func (s *stamper) below(ctx context.Context, w io.Writer, dir, shown string, depth int) {
	const maxDepth = 64
	if depth > maxDepth {
		return
	}
	for info, err := range s.tree.List(ctx, dir) {
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
