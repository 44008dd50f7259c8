package table

import (
	"context"
	"path"
	"regexp"
	"strings"

	"stoa/format"
	"stoa/format/carbon/internal/status"
	"stoa/store"
)

// CarbonData leaves files beside a table that nothing refers to any more: earlier update statuses, indexes that
// were merged, files of segments that were compacted or deleted, locks. They are told from foreign ones by
// their names and places.

// carbonLocks is where CarbonData's writers leave empty files beside a table; they say nothing of it.
const carbonLocks = "LockFiles"

var (
	segmentDir  = regexp.MustCompile(`^Fact/Part\d+/Segment_([^/]+)$`)
	partDir     = regexp.MustCompile(`^Fact/Part\d+$`)
	hiveDir     = regexp.MustCompile(`(^|/)[^/]+=[^/]*$`) // of a partition
	ownMetadata = regexp.MustCompile(`^Metadata/(schema|tablestatus[^/]*|tableupdatestatus-[^/]*|[^/]*\.(dict|dictmeta|sortindex)|segments/[^/]+\.segment)$`)
	ownData     = regexp.MustCompile(`\.(carbondata|carbonindex|carbonindexmerge|deletedelta|dict|dictmeta|sortindex)$`)
	ownAnywhere = regexp.MustCompile(`(^|/)([._][^/]*|[^/]*\.(crc|lock|mdt))$`) // CarbonData's, or Hadoop's beside it
)

// Claims is format.Format.Claims.
func Claims(ctx context.Context, tg format.Target, o format.OpenOptions) func(name string, dir bool) format.Claim {
	segments := map[string]map[string]bool{} // by table; nil: not known
	known := func(table, segment string) bool {
		all, ok := segments[table]
		if !ok {
			all = knownSegments(ctx, tg.Tree, table, o)
			segments[table] = all
		}
		return all == nil || all[segment]
	}
	yes := func(is bool, err error) bool { return is && err == nil } // whoever lists it meets the error
	return func(name string, dir bool) format.Claim {
		table, rel := splitTable(ctx, tg.Tree, name)
		switch {
		case strings.HasPrefix(path.Base(name), store.TempPrefix):
		case rel == "." && dir && yes(isTable(ctx, tg.Tree, name)), ownAnywhere.MatchString(name), !dir &&
			ownFile(rel), dir && ownDir(rel):
			return format.OfTable
		case rel == "." && dir && yes(holdsTable(ctx, tg.Tree, name)):
			return format.AboveTable
		case dir:
			if m := segmentDir.FindStringSubmatch(rel); m != nil && known(table, m[1]) {
				return format.OfTable
			}
		}
		return format.Foreign
	}
}

func ownFile(rel string) bool {
	return ownMetadata.MatchString(rel) || ownData.MatchString(rel) && !strings.HasPrefix(rel, "Metadata/")
}

func ownDir(rel string) bool {
	return rel == "Fact" || rel == "Metadata" || rel == "Metadata/segments" || path.Base(rel) == carbonLocks ||
		partDir.MatchString(rel) || hiveDir.MatchString(rel)
}

// splitTable cuts a name behind the directory of the table that it lies in; rel is "." if it lies in none, or is one.
func splitTable(ctx context.Context, tree store.Tree, name string) (table, rel string) {
	for at := 0; ; {
		i := strings.IndexByte(name[at:], '/')
		if i < 0 {
			return name, "."
		}
		at += i + 1
		if first, _, _ := strings.Cut(name[at:], "/"); first == "Fact" || first == "Metadata" ||
			first == carbonLocks || strings.Contains(first, "=") {
			return name[:at-1], name[at:]
		}
		if dir := name[:at-1]; dir != "" {
			if is, err := isTable(ctx, tree, dir); is && err == nil {
				return dir, name[at:]
			}
		}
	}
}

// knownSegments are those of which the status of a table, or its history, tells; nil: it cannot be read.
func knownSegments(ctx context.Context, tree store.Tree, table string, o format.OpenOptions) map[string]bool {
	var loads, past []status.Load
	name := path.Join(table, "Metadata", "tablestatus")
	if status.ReadJSON(ctx, tree, name, o.Limits.WithDefaults(), &loads) != nil {
		return nil
	}
	_ = status.ReadJSON(ctx, tree, name+".history", o.Limits.WithDefaults(), &past) // most tables have none
	known := map[string]bool{}
	for _, l := range append(loads, past...) {
		known[l.Name], known[l.Id()], known[l.Merged] = true, true, true
	}
	return known
}
