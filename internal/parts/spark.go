package parts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"stoa/region"
	"stoa/store"
	"strconv"
	"strings"
)

// Spark's jobs, such as Kudu's own backup, name the files of a table
//
//	part-TASK-JOB-cFILE.EXT
//
// TASK is the number of the task that wrote the file. Tasks without rows write none, so a missing number is
// inconclusive. Only three signs show missing files: the numbers FILE of a task have no gaps; Hadoop's local file
// system writes .NAME.crc beside NAME; and _SUCCESS lists the files if the job used one of Hadoop's newer committers.
var sparkPart = regexp.MustCompile(
	`^part-\d{5,}-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:_\d+)?[.-]c(\d{3,})(\.[^/]+)$`)

// sparkDir is the content of a directory with such files.
type sparkDir struct {
	name    string
	here    map[string]bool
	parts   []string // names of files of a job
	success store.Info
}

// sparkDirs returns the directories of those names that are such files or their checksum files.
func sparkDirs(ctx context.Context, tree store.Tree, names []string) (out []*sparkDir) {
	seen := map[string]bool{}
	for _, name := range names {
		dir := path.Dir(name)
		if !sparkPart.MatchString(strings.TrimSuffix(strings.TrimPrefix(path.Base(name), "."), ".crc")) || seen[dir] {
			continue
		}
		seen[dir] = true
		d := &sparkDir{name: dir, here: map[string]bool{}}
		for info, err := range tree.List(ctx, dir) {
			if err != nil { // reported where the directory is listed to open the table
				continue
			}
			base := path.Base(info.Name)
			if d.here[base] = true; sparkPart.MatchString(base) {
				d.parts = append(d.parts, base)
			} else if base == "_SUCCESS" {
				d.success = info
			}
		}
		out = append(out, d)
	}
	return out
}

// missing returns the files that must have existed, each with the reason. all reports that no others can be missing.
func (d *sparkDir) missing(ctx context.Context, tree store.Tree) (out map[string]string, all bool) {
	out = map[string]string{}
	for base := range d.here {
		name := strings.TrimSuffix(strings.TrimPrefix(base, "."), ".crc")
		if "."+name+".crc" == base && sparkPart.MatchString(name) && !d.here[name] {
			out[name] = base + " lies beside it"
		}
	}
	for _, base := range d.parts {
		m := sparkPart.FindStringSubmatchIndex(base)
		n, err := strconv.Atoi(base[m[2]:m[3]])
		for k := max(0, n-longestGap); err == nil && k < n; k++ {
			before := fmt.Sprintf("%s%03d%s", base[:m[2]], k, base[m[3]:])
			if !d.here[before] {
				out[before] = base + " is here: the files of a task are numbered without gaps"
			}
		}
	}
	listed := d.listed(ctx, tree)
	for _, name := range listed {
		if base := path.Base(name); !d.here[base] && sparkPart.MatchString(base) {
			out[base] = "_SUCCESS lists it"
		}
	}
	return out, len(listed) > 0
}

// listed returns the files that _SUCCESS lists; none if it is empty, as it usually is, or if its list is incomplete.
func (d *sparkDir) listed(ctx context.Context, tree store.Tree) []string {
	const maxSize, maxListed = 1 << 20, 100 // committers list no more than maxListed files
	if d.success.Name == "" || d.success.Size == 0 || d.success.Size > maxSize {
		return nil
	}
	src, err := tree.Open(ctx, d.success.Name)
	if err != nil {
		return nil
	}
	defer src.Close()
	b := make([]byte, d.success.Size)
	if n, err := src.ReadAt(ctx, b, 0); err != nil && !(errors.Is(err, io.EOF) && n == len(b)) {
		return nil
	}
	var doc struct {
		Filenames []string `json:"filenames"`
	}
	if json.Unmarshal(b, &doc) != nil || len(doc.Filenames) >= maxListed {
		return nil
	}
	return doc.Filenames
}

// missingSpark returns findings about missing files in the directories of names.
func missingSpark(ctx context.Context, tree store.Tree, names []string) (out []region.Finding) {
	for _, d := range sparkDirs(ctx, tree, names) {
		gone, _ := d.missing(ctx, tree)
		for base, why := range gone {
			out = append(out, missing(path.Join(d.name, base), "it is missing, but %s", why))
		}
	}
	return out
}

// Uncertain is a directory in which files may be missing without a sign.
type Uncertain struct {
	Dir  string
	Last string // the last of its files, by name; "" if there is none
}

// Unknown returns the directories of names in which files may be missing without a sign.
func Unknown(ctx context.Context, tree store.Tree, names []string) (out []Uncertain) {
	for _, d := range sparkDirs(ctx, tree, names) {
		if _, all := d.missing(ctx, tree); all {
			continue
		}
		u := Uncertain{Dir: d.name}
		if len(d.parts) > 0 {
			u.Last = slices.Max(d.parts)
		}
		out = append(out, u)
	}
	return out
}
