package table

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/format/carbon/internal/status"
	"stoa/store"
)

// CarbonData leaves files in a table's directories to which nothing refers any more: earlier update statuses, merged
// indexes, files of compacted or deleted segments, locks. Their names and directories distinguish them from files that
// are not CarbonData's.

// carbonLocks is the directory in which CarbonData's writers leave empty lock files.
const carbonLocks = "LockFiles"

var (
	segmentDir  = regexp.MustCompile(`^Fact/Part\d+/Segment_([^/]+)$`)
	partDir     = regexp.MustCompile(`^Fact/Part\d+$`)
	hiveDir     = regexp.MustCompile(`(^|/)[^/]+=[^/]*$`) // of a partition
	ownMetadata = regexp.MustCompile(`^Metadata/(schema|tablestatus[^/]*|tableupdatestatus-[^/]*|` +
		`[^/]*\.(dict|dictmeta|sortindex)|segments/[^/]+\.segment)$`)
	ownData = regexp.MustCompile(`\.(carbondata|carbonindex|carbonindexmerge|deletedelta|dict|dictmeta|sortindex)$`)
	// bloom filters and Lucene's files: INDEX/SEGMENT/FILE, or in a directory below
	indexData = regexp.MustCompile(`^[^/]+/\d+(\.\d+)?/([^/]+/)?` +
		`(segments_\w+|[^/]+\.(cfs|cfe|si|bloomindex(merge)?))$`)
	indexDir    = regexp.MustCompile(`^[^/]+(/\d+(\.\d+)?(/[^/]+)?)?$`)
	ownAnywhere = regexp.MustCompile(`(^|/)([._][^/]*|[^/]*\.(crc|lock|mdt))$`) // CarbonData's, or Hadoop's beside it
)

// Claims implements format.Format.Claims.
func Claims(ctx context.Context, tg format.Target, o format.OpenOptions) format.Claimer {
	c := &claimer{ctx: ctx, tree: tg.Tree, o: o, root: path.Clean(tg.Name), segments: map[string]map[string]bool{}}
	return c.claim
}

// claimer decides which files in a directory are CarbonData's.
type claimer struct {
	ctx      context.Context
	tree     store.Tree
	o        format.OpenOptions
	root     string
	segments map[string]map[string]bool // segments by table; nil: unknown
}

func (c *claimer) claim(name string, dir bool) (format.Claim, error) {
	if strings.HasPrefix(path.Base(name), store.TempPrefix) {
		return format.Foreign, nil
	}
	table, rel, err := c.split(name)
	switch {
	case err != nil:
		return format.Foreign, err
	case ownAnywhere.MatchString(name), !dir && ownFile(rel), dir && ownDir(rel):
		return format.OfTable, nil
	case !dir && indexData.MatchString(rel):
		return format.OfTable, nil
	case !dir:
		return format.Foreign, nil
	case rel != "." && indexDir.MatchString(rel):
		if is, err := c.isIndex(table, rel); is || err != nil {
			return format.OfTable, err
		}
		return format.Foreign, nil
	case rel == ".":
		return c.above(name)
	}
	m := segmentDir.FindStringSubmatch(rel)
	if m == nil {
		return format.Foreign, nil
	}
	all, ok := c.segments[table]
	if !ok {
		if all, err = c.knownSegments(table); err != nil {
			return format.Foreign, err
		}
		c.segments[table] = all
	}
	if all == nil || all[m[1]] {
		return format.OfTable, nil
	}
	return format.Foreign, nil
}

// isIndex reports whether a directory is that of a bloom or Lucene index of a table, or lies in it: some file there is
// one of these indexes.
func (c *claimer) isIndex(table, rel string) (is bool, err error) {
	index, _, _ := strings.Cut(rel, "/")
	var look func(dir string, depth int) error
	look = func(dir string, depth int) error {
		for x, err := range c.tree.List(c.ctx, path.Join(table, dir)) {
			name := dir + "/" + path.Base(x.Name)
			switch {
			case err != nil:
				return err
			case is:
				return nil
			case x.Dir && depth < 2 && indexDir.MatchString(name):
				err = look(name, depth+1)
			case !x.Dir:
				is = indexData.MatchString(name)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return is, look(index, 0)
}

// above claims a directory that is a table or contains tables. A store has tables, and databases with tables. A table
// at a greater depth, or below a directory of data files, does not belong to the store (see StoreTables), and is found
// on its own.
func (c *claimer) above(name string) (format.Claim, error) {
	if name != c.root {
		k, _, err := Look(c.ctx, format.Target{Tree: c.tree, Name: c.root})
		rel := strings.TrimPrefix(strings.TrimPrefix(name, c.root), "/")
		if err != nil || k != KindStore || c.root != "." && strings.Count(rel, "/") > 1 {
			return format.Foreign, err
		}
	}
	if is, err := isTable(c.ctx, c.tree, name); is || err != nil {
		return format.OfTable, err
	}
	if holds, err := holdsTable(c.ctx, c.tree, name); holds || err != nil {
		return format.AboveTable, err
	}
	return format.Foreign, nil
}

func ownFile(rel string) bool {
	return ownMetadata.MatchString(rel) || ownData.MatchString(rel) && !strings.HasPrefix(rel, "Metadata/")
}

func ownDir(rel string) bool {
	return rel == "Fact" || rel == "Metadata" || rel == "Metadata/segments" || path.Base(rel) == carbonLocks ||
		partDir.MatchString(rel) || hiveDir.MatchString(rel)
}

// split splits a name into the directory of its table and the rest; rel is "." if the name is a table, or is not in any
// table. A directory NAME=VALUE is a partition's, but may also be somebody's, with tables below.
func (c *claimer) split(name string) (table, rel string, err error) {
	partitioned := -1 // where the first such directory begins
	for at := 0; ; {
		i := strings.IndexByte(name[at:], '/')
		if i < 0 {
			break
		}
		at += i + 1
		dir := name[:at-1]
		if first, _, _ := strings.Cut(name[at:], "/"); first == "Fact" || first == "Metadata" || first == carbonLocks {
			return dir, name[at:], nil
		} else if strings.Contains(first, "=") && partitioned < 0 {
			partitioned = at
		}
		if dir != "" {
			if is, err := isTable(c.ctx, c.tree, dir); is || err != nil {
				return dir, name[at:], err
			}
		}
	}
	if partitioned >= 0 {
		return name[:partitioned-1], name[partitioned:], nil
	}
	return name, ".", nil
}

// knownSegments returns the segments in the status of a table or in its history; nil if the status is damaged or
// missing.
func (c *claimer) knownSegments(table string) (map[string]bool, error) {
	var loads, past []status.Load
	name, _, err := CurrentStatus(c.ctx, c.tree, table)
	if err != nil {
		return nil, err
	}
	unknown := func(err error) bool {
		return err == nil || errors.Is(err, fault.Corrupt) || errors.Is(err, fs.ErrNotExist)
	}
	if err := status.ReadJSON(c.ctx, c.tree, name, c.o.Limits.WithDefaults(), &loads); !unknown(err) {
		return nil, err
	} else if err != nil {
		return nil, nil
	}
	// most tables have no history
	name = path.Join(table, "Metadata", "tablestatus.history")
	if err := status.ReadJSON(c.ctx, c.tree, name, c.o.Limits.WithDefaults(), &past); !unknown(err) {
		return nil, err
	}
	known := map[string]bool{}
	for _, l := range append(loads, past...) {
		known[l.Name], known[l.SegmentID()], known[l.Merged] = true, true, true
	}
	return known, nil
}
