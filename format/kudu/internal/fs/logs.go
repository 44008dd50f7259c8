package fs

import (
	"cmp"
	"context"
	"path"
	"strconv"
	"strings"

	"stoa/internal/sorted"
	"stoa/store"
)

// LogBytes returns the size of a tablet's log in bytes; 0 if it cannot be listed. The number of its rows is unknown
// without a replay.
func (f *FS) LogBytes(ctx context.Context, tablet string) (n int64) {
	segments, err := f.LogSegments(ctx, tablet)
	if err != nil {
		return 0
	}
	for _, s := range segments {
		n += s.Size
	}
	return n
}

// WALSegments returns the files of a tablet's log in the order in which they were written; none if the log is missing.
func (f *FS) WALSegments(ctx context.Context, tablet string) ([]store.Info, error) {
	if f.WALDir == "" {
		return nil, nil
	}
	var out []store.Info
	for info, err := range f.Tree.List(ctx, path.Join(f.WALDir, WalsDir, tablet)) {
		if Gone(err) {
			return nil, nil
		}
		if err != nil {
			return out, err
		}
		if info.Dir {
			f.odd(path.Dir(info.Name))
		}
		if n, ok := strings.CutPrefix(path.Base(info.Name), "wal-"); ok && !info.Dir {
			if _, err := strconv.ParseUint(n, 10, 64); err == nil {
				out = append(out, info)
			}
		}
	}
	sorted.By(out, func(a, b store.Info) int {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// LogSegments returns the files of a tablet's log or, if the server stopped while replaying it, those of the old log.
func (f *FS) LogSegments(ctx context.Context, tablet string) ([]store.Info, error) {
	if s, err := f.WALSegments(ctx, tablet+RecoverySuffix); err != nil || len(s) > 0 {
		return s, err
	}
	return f.WALSegments(ctx, tablet)
}
