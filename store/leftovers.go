package store

import (
	"os"
	"strings"
	"sync"
)

// leftovers caches the temporary names in directories. A program that writes n files to one directory would otherwise
// list it n times, which is n²/2 names in all. So a large directory is listed again only after a number of sinks in
// proportion to its size. Files that another process leaves meanwhile are found by the next listing.
var leftovers = leftoverNames{of: map[string]*listed{}}

type leftoverNames struct {
	mu sync.Mutex
	of map[string]*listed
}

// listed is the result of listing a directory.
type listed struct {
	temporary []string
	left      int // sinks until the directory is listed again
}

const (
	listedPerSink  = 8    // names, approximately, in a large directory
	maxRemembered  = 1024 // directories
	alwaysListedTo = 128  // names
)

// in returns the temporary names in a directory.
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
