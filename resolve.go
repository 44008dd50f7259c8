package stoa

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/region"
	"stoa/store"
)

// found is a target and the format that reads it.
type found struct {
	format.Target
	format *format.Format
	set    string    // the directory that is no format's own and in which it was found
	dir    bool      // it is a directory in that
	below  []string  // directories of files beside it, which are not read; of the first of a set
	left   []leftOut // files beside it that are none of the table; of the first of a set
}

// leftOut is an entry of a directory of files that is not read, and why.
type leftOut struct {
	name  string
	err   error
	known *region.Finding // of what is no file, or should be one of a format by its name; else nil
}

// finding is how verify and the reading verbs tell it. What cannot be opened, or led to what is gone, may have
// been part of the table.
func (l *leftOut) finding() region.Finding {
	if l.known != nil {
		return *l.known
	}
	f := region.Finding{Code: "dir.left.out", Severity: region.Warning, At: fault.Span{Object: l.name},
		Part: l.name, Rows: [2]int64{-1, -1}, Message: reasonOf(l.err)}
	if !errors.Is(l.err, fault.Unsupported) {
		f.Code, f.Severity, f.Lost = "file.unreadable", region.Error, -1
	}
	return f
}

// passed reports the directories and files that are not read.
func (f *found) passed() (out []region.Finding) {
	for _, l := range f.left {
		out = append(out, l.finding())
	}
	for _, name := range f.below {
		out = append(out, region.Finding{Code: "dir.below", Severity: region.Warning, At: fault.Span{Object: name},
			Part: name, Rows: [2]int64{-1, -1},
			Message: fmt.Sprintf("the files beside it in %s are read, and what lies in this directory is not", f.set)})
	}
	return out
}

// cut is an error if a file of a directory could not be read so far that anybody knows whether it is one of the
// table's.
func cut(targets []found) error {
	for _, tg := range targets {
		for _, l := range tg.left {
			if store.Failing(l.err) {
				return l.err
			}
		}
	}
	return nil
}

// resolveAll finds the targets that the URIs name, and their formats.
func resolveAll(ctx context.Context, uris []string, o OpenOptions) ([]found, error) {
	var out []found
	for _, uri := range uris {
		some, err := resolveURI(ctx, uri, o)
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	if len(out) == 0 {
		return nil, fault.Invalidf("nothing to open")
	}
	return out, nil
}

func resolveURI(ctx context.Context, uri string, o OpenOptions) ([]found, error) {
	tree := o.tree()
	name, table := uri, ""
	info, err := tree.Stat(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		if i := strings.LastIndexByte(uri, '#'); i >= 0 {
			name, table = uri[:i], uri[i+1:]
			info, err = tree.Stat(ctx, name)
		}
	}
	if errors.Is(err, fs.ErrNotExist) && isPattern(name) {
		return resolveGlob(ctx, name, table, o)
	}
	if err != nil {
		return nil, err
	}
	name = resolveDotDot(tree, name)
	tg := format.Target{Tree: tree, Name: name, Table: table}
	f, err := Probe(ctx, tg, o)
	if err == nil {
		return []found{{Target: tg, format: f}}, nil
	}
	// what lies in it may be reported even if not all can be looked at
	if info.Dir && o.From == "" && (!store.Failing(err) || denied(err)) {
		return resolveDir(ctx, tg, o)
	}
	return nil, err
}

// resolveDotDot is name as the operating system resolves it, where .. follows a symbolic link.
func resolveDotDot(tree store.Tree, name string) string {
	if local, ok := tree.(interface{ ResolveDotDot(string) string }); ok {
		return local.ResolveDotDot(name)
	}
	return name
}

func isPattern(name string) bool { return strings.ContainsAny(name, "*?[") }

func resolveGlob(ctx context.Context, pattern, table string, o OpenOptions) ([]found, error) {
	names, err := glob(ctx, pattern, o.tree())
	if err != nil {
		return nil, err
	}
	var out []found
	missing := missingParts(ctx, o.tree(), names, o)
	for _, uri := range names {
		if table != "" {
			uri += "#" + table
		}
		some, err := resolveURI(ctx, uri, o)
		if err != nil {
			return nil, err
		}
		out = append(out, some...)
	}
	if len(out) > 0 {
		out[0].left = append(out[0].left, missing...)
	}
	return out, nil
}

// glob is what a pattern matches, one at least. Names that begin with a dot are matched by patterns that do, as
// in a shell.
func glob(ctx context.Context, pattern string, tree store.Tree) (names []string, err error) {
	first := strings.IndexAny(pattern, "*?[")
	k := strings.LastIndexByte(pattern[:first], '/') + 1
	dir, rest := pattern[:k], pattern[k:]
	// of which directory it is the one above differs from match to match
	if slices.Contains(strings.Split(rest, "/"), "..") {
		return nil, fault.Invalidf("%s: .. does not go behind a pattern", pattern)
	}
	if dir != "" {
		dir = strings.TrimSuffix(resolveDotDot(tree, dir), "/") + "/"
	}
	var walk func(dir string, parts []string) error
	walk = func(dir string, parts []string) error {
		for info, err := range tree.List(ctx, dir) {
			if err != nil {
				return err
			}
			base := path.Base(info.Name)
			if base[0] == '.' && parts[0][0] != '.' {
				continue
			}
			switch ok, err := path.Match(parts[0], base); {
			case err != nil:
				return fault.Invalidf("%s: %v", pattern, err)
			case ok && len(parts) == 1:
				names = append(names, info.Name)
			case ok && info.Dir:
				if err := walk(info.Name, parts[1:]); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if dir != "/" {
		dir = strings.TrimSuffix(dir, "/")
	}
	if err := walk(dir, strings.Split(path.Clean(rest), "/")); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, &fs.PathError{Op: "open", Path: pattern, Err: errors.New("no file matches")}
	}
	return names, nil
}

// resolveDir takes the files of a directory that is no format's own, and the directories in it that are one's.
// Names that begin with . or _ are passed over, as every system does that keeps tables in directories.
func resolveDir(ctx context.Context, tg format.Target, o OpenOptions) ([]found, error) {
	var out []found
	var below []string
	var left []leftOut
	var names []string
	for info, err := range tg.Tree.List(ctx, tg.Name) {
		if err != nil && info.Name == "" {
			return nil, err
		}
		if ignored(info.Name) {
			continue
		}
		if err != nil {
			left = append(left, leftOut{name: info.Name, err: err})
			continue
		}
		names = append(names, info.Name)
		in := format.Target{Tree: tg.Tree, Name: info.Name, Table: tg.Table}
		f, err := Probe(ctx, in, o)
		if err != nil && info.Dir && (!store.Failing(err) || denied(err)) {
			if holdsFile(ctx, tg.Tree, info.Name, 0) {
				below = append(below, info.Name)
			}
			continue
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			l := leftOut{info.Name, err, misnamed(ctx, info.Name, o, err)}
			if l.known != nil {
				l.err = fault.Corruptf(l.known.At, "", "%s", l.known.Message)
			}
			left = append(left, l)
			continue
		}
		out = append(out, found{Target: in, format: f, set: tg.Name, dir: info.Dir})
	}
	for odd := range store.OddOf(ctx, tg.Tree, tg.Name) {
		if !ignored(odd.Name) {
			left = append(left, leftOut{odd.Name, OddError(odd, o), oddFinding(odd, o)})
		}
	}
	if len(out) == 0 {
		return nil, nothingReadable(tg.Name, left)
	}
	out[0].below, out[0].left = below, append(left, missingParts(ctx, tg.Tree, names, o)...)
	return out, nil
}

// ignored reports whether an entry with this name is no part of a directory of files.
func ignored(name string) bool {
	base := path.Base(name)
	return base[0] == '.' || base[0] == '_'
}

// nothingReadable is the error for a directory in which nothing can be read: why the first file cannot be read, if
// there is one.
func nothingReadable(name string, left []leftOut) error {
	for _, l := range left {
		if !errors.Is(l.err, fault.Unsupported) {
			return l.err
		}
	}
	return fault.New(fault.Invalid, fault.Span{Object: name}, "", "the directory holds no files that stoa knows")
}

// holdsFile reports whether there is a file in or below a directory, except those that begin with . or _. A directory
// that cannot be listed counts as a file.
func holdsFile(ctx context.Context, tree store.Tree, name string, depth int) bool {
	for info, err := range tree.List(ctx, name) {
		if err != nil {
			return true
		}
		base := path.Base(info.Name)
		if base[0] == '.' || base[0] == '_' {
			continue
		}
		if !info.Dir || depth > maxDepth || holdsFile(ctx, tree, info.Name, depth+1) {
			return true
		}
	}
	return false
}

// maxDepth is how far directories are followed.
const maxDepth = 40

// oddFinding reports an entry that is not a file. A dangling link that is named like a file of a format is a lost file.
func oddFinding(odd store.Odd, o OpenOptions) *region.Finding {
	f := &region.Finding{Code: "dir.odd", Severity: region.Warning, At: fault.Span{Object: odd.Name},
		Part: odd.Name, Rows: [2]int64{-1, -1}, Message: odd.What}
	if by := byName(format.Target{Name: odd.Name}, o.formats()); odd.Link && by != nil {
		f.Code, f.Severity, f.Lost = "file.unreadable", region.Error, -1
		f.Message = fmt.Sprintf("by its name it is %s, but: %s", by.Name, odd.What)
	}
	return f
}

// OddError says why an entry of a directory is skipped: an error of class Corrupt if a file of the table should be
// there.
func OddError(odd store.Odd, o OpenOptions) error {
	if f := oddFinding(odd, o); f.Severity == region.Error {
		return fault.Corruptf(f.At, "", "%s", f.Message)
	}
	return &odd
}

// misnamed is a finding about a file that no format recognizes although its name has a format's extension: a disk that
// returned nothing, or zeros, must not pass for an unknown file. nil: the name says nothing.
func misnamed(ctx context.Context, name string, o OpenOptions, err error) *region.Finding {
	if o.From != "" || !errors.Is(err, fault.Unsupported) {
		return nil
	}
	base := strings.ToLower(path.Base(name))
	for _, f := range o.formats() {
		for _, ext := range f.Extensions {
			// text has no marks by which to know it
			if !strings.HasSuffix(base, ext) || f.Describe == nil && !f.ByPages() && !zeros(ctx, o.tree(), name) {
				continue
			}
			return &region.Finding{Code: "file.unreadable", Severity: region.Error, At: fault.Span{Object: name},
				Part: name, Rows: [2]int64{-1, -1}, Lost: -1,
				Message: fmt.Sprintf("by its name it is %s, but: %s", f.Name, reasonOf(err))}
		}
	}
	return nil
}

// zeros reports whether a file begins with zeros.
func zeros(ctx context.Context, tree store.Tree, name string) bool {
	src, err := tree.Open(ctx, name)
	if err != nil {
		return false
	}
	defer src.Close()
	var head [512]byte
	n, _ := src.ReadAt(ctx, head[:], 0)
	return n > 0 && head == [512]byte{}
}

func reasonOf(err error) string {
	var e *fault.Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return err.Error()
}

// longestGap is how many files in a row may be missing: files with a longer gap are numbered in some other way.
const longestGap = 64

// missingParts are the gaps in the numbers of files that are called part-00000.EXT, part-00001.EXT and so on, as stoa
// calls those of a table that it divides. Other systems put more into the names, since they may leave numbers out.
// Only numbers below one that is there can be missed: a format whose files know more tells it itself.
func missingParts(ctx context.Context, tree store.Tree, names []string, o OpenOptions) (out []leftOut) {
	last := map[[2]string]int{} // by directory and ending
	for _, name := range names {
		base, n, ext := path.Base(name), 0, ""
		if _, err := fmt.Sscanf(base, "part-%05d%s", &n, &ext); err != nil || partName(n, ext) != base ||
			ext[0] != '.' || n > 99_999 {
			continue
		}
		if !numbered(strings.TrimSuffix(base, ".gz"), o.formats()) {
			continue
		}
		key := [2]string{path.Dir(name), ext}
		last[key] = max(last[key], n)
	}
	for key, n := range last {
		var gap []leftOut
		for i := n - 1; i >= -1; i-- {
			name := path.Join(key[0], partName(i, key[1]))
			if i < 0 || !isMissing(ctx, tree, name) {
				out, gap = append(out, gap...), nil
				continue
			}
			f := region.Finding{Code: "dir.part.missing", Severity: region.Error, At: fault.Span{Object: name},
				Part: name, Rows: [2]int64{-1, -1}, Lost: -1,
				Message: fmt.Sprintf("it is not there, but %s is: the files of a table are numbered without gaps",
					partName(n, key[1]))}
			if gap = append(gap, leftOut{name, fault.Corruptf(f.At, "", "%s", f.Message), &f}); len(gap) > longestGap {
				break
			}
		}
	}
	out = append(out, missingSpark(ctx, tree, names)...)
	out = append(out, doubledParts(ctx, tree, names, o)...)
	slices.SortFunc(out, func(a, b leftOut) int { return cmp.Compare(a.name, b.name) })
	return out
}

func partName(n int, ext string) string { return fmt.Sprintf("part-%05d%s", n, ext) }

// numbered reports whether a file, by its name, is in a format that does not itself record which files are missing.
func numbered(base string, formats []format.Format) (yes bool) {
	for _, f := range formats {
		if slices.ContainsFunc(f.Extensions, func(ext string) bool { return strings.HasSuffix(base, ext) }) {
			if yes = true; f.Parted {
				return false
			}
		}
	}
	return yes
}

// isMissing reports whether a file does not exist.
func isMissing(ctx context.Context, tree store.Tree, name string) bool {
	_, err := tree.Stat(ctx, name)
	return errors.Is(err, fs.ErrNotExist)
}

// Spark's jobs, such as Kudu's own backup, call the files of a table
//
//	part-TASK-JOB-cFILE.EXT
//
// TASK is the number of the task that wrote it. Tasks without rows write no file, so that a number that is not there
// says nothing, and neither does anything else say how many files there must be, but for three signs: the numbers of
// the files of one task have no gaps; Hadoop's local file system writes .NAME.crc beside NAME; and _SUCCESS lists the
// files if the job had one of Hadoop's newer committers.
var sparkPart = regexp.MustCompile(
	`^part-\d{5,}-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:_\d+)?[.-]c(\d{3,})(\.[^/]+)$`)

// sparkDir is what lies in a directory of such files.
type sparkDir struct {
	name    string
	here    map[string]bool
	parts   []string // names of files of a job
	success store.Info
}

// sparkDirs are the directories of names in which such files lie.
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
			if err != nil { // who lists it meets the error
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

// missing are the files that were there, each with the reason why that is known, and whether all are known.
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
				out[before] = base + " is there: the files of a task are numbered without gaps"
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

// listed are the files that _SUCCESS lists; none if it is empty, as most are, or does not list all.
func (d *sparkDir) listed(ctx context.Context, tree store.Tree) []string {
	const maxSize, committers = 1 << 20, 100 // which list no more
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
	if json.Unmarshal(b, &doc) != nil || len(doc.Filenames) >= committers {
		return nil
	}
	return doc.Filenames
}

// missingSpark are the files that are known to be missing in the directories of names.
func missingSpark(ctx context.Context, tree store.Tree, names []string) (out []leftOut) {
	for _, d := range sparkDirs(ctx, tree, names) {
		gone, _ := d.missing(ctx, tree)
		for base, why := range gone {
			name := path.Join(d.name, base)
			f := region.Finding{Code: "dir.part.missing", Severity: region.Error, At: fault.Span{Object: name},
				Part: name, Rows: [2]int64{-1, -1}, Lost: -1, Message: "it is not there, but " + why}
			out = append(out, leftOut{name, fault.Corruptf(f.At, "", "%s", f.Message), &f})
		}
	}
	return out
}

// unknownParts reports directories in which a file may be missing without anybody knowing.
func (v *dirVerifier) unknownParts(names []string) {
	for _, d := range sparkDirs(v.ctx, v.o.tree(), names) {
		if _, all := d.missing(v.ctx, v.o.tree()); all || v.stopped {
			continue
		}
		slices.Sort(d.parts)
		last := "none is there"
		if len(d.parts) > 0 {
			last = d.parts[len(d.parts)-1] + " is the last that is there"
		}
		v.report("dir.part.unknown", region.Note, d.name, "the files are numbered by the tasks of a Spark job, and "+
			"%s: nothing says how many there must be, so one that is gone without a trace is not missed", last)
	}
}
