package store

import (
	"os"
	"strings"
	"sync"
)

// leftovers remembers the temporary names in directories. Whoever writes n files to one directory would list it n
// times, which is n²/2 names: a large one is listed again only after as many sinks as make up for it. What another
// process leaves meanwhile is found by the listing after that.
var leftovers = leftoverNames{of: map[string]*listed{}}

type leftoverNames struct {
	mu sync.Mutex
	of map[string]*listed
}

// listed is what was in a directory.
type listed struct {
	temporary []string
	left      int // sinks until it is listed again
}

const (
	listedPerSink  = 64   // names, about
	maxRemembered  = 1024 // directories
	alwaysListedTo = 2 * listedPerSink
)

// in are the temporary names in a directory.
func (l *leftoverNames) in(dir string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if x := l.of[dir]; x != nil && x.left > 0 {
		x.left--
		return x.temporary
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	x := &listed{}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), TempPrefix) {
			x.temporary = append(x.temporary, e.Name())
		}
	}
	if x.left = len(entries) / listedPerSink; len(entries) < alwaysListedTo {
		x.left = 0
	}
	if len(l.of) >= maxRemembered {
		clear(l.of)
	}
	l.of[dir] = x
	return x.temporary
}
